@0xfb5014465bdd1dc0;
# The values of the store's column families (coordinator/store). Each is [format version u8 = 1]
# [Cap'n Proto stream framing][CRC-32C of all before, 4 bytes little-endian]. Keys: docs/store-format.md.
# Evolution: schemas/README.md.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("prefgrid::schema");
using Job = import "job.capnp";

struct MetaRecord {
  formatVersion @0 :UInt32;     # a store of a newer format is refused, untouched
  softwareVersion @1 :Text;     # that made it
  createdWallMs @2 :Int64;
}

struct SequenceRecord {
  # Rewritten in every batch. A write-ahead log with a hole opens without a word; a history whose
  # length differs from this does not.
  lastEvent @0 :UInt64;         # sequence number of the last event
  eventCount @1 :UInt64;        # events present (after any compaction)
  resultCount @2 :UInt64;
  artifactCount @3 :UInt64;
}

struct ExperimentRecord {
  # All that the grid is expanded from: no file outside the store is needed again.
  id @0 :UInt32;
  name @1 :Text;
  spec @2 :Job.Value;           # the checked spec, typed, defaults left out
  specText @3 :Text;            # as the person wrote it
  dataset @4 :Job.Value;        # summary: users, groups, item counts
  datasetDigest @5 :Data;       # the canonical JSON Lines, an artefact of this store
  submittedWallMs @6 :Int64;
  priority @7 :Int32;
  cancelled @8 :Bool;           # nobody's jobs run for it until it is submitted again
}

struct JobRecord {
  # Only for jobs that have left `ready`: the others follow from their experiments.
  attempt @0 :UInt32;           # the last one issued
  failures @1 :List(UInt32);    # charged, by FailureClass
  union {
    waiting @2 :Void;           # failed or lost before, may run again
    leased :group {
      workerName @3 :Text;
      sinceWallMs @4 :Int64;
    }
    done @5 :Void;
    quarantined @6 :Job.JobFailure;
    cancelled @7 :Void;
  }
}

struct EventRecord {
  # One state change; append-only.
  wallMs @0 :Int64;
  job @1 :Data;                 # JobKey; empty for events about a worker or an experiment
  attempt @2 :UInt32;
  worker @3 :Text;
  union {
    submitted @4 :Text;         # an experiment's name
    leased @5 :Void;
    done @6 :Void;
    failed @7 :Job.JobFailure;
    quarantined @8 :Void;
    leaseLost @9 :Void;
    leaseReturned @10 :Void;
    resultDropped @11 :Text;    # why
    workerJoined @12 :Text;     # host
    workerLeft @13 :Text;       # why
    cancelled @14 :Void;
    retried @15 :Void;
  }
}

struct ResultRecord {
  result @0 :Job.JobResult;     # inline artefacts included
  attempt @1 :UInt32;
  worker @2 :Text;
  committedWallMs @3 :Int64;
}
