// The parts of libtorch that prefgrid uses, and everything that differs between its versions.
// Included instead of torch/torch.h, which costs 12 s a file; this header is precompiled.
#pragma once

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/grad_mode.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/version.h>
