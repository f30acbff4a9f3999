#!/usr/bin/env python3
"""Compare prefgrid's model folders with Hugging Face's libraries; never run by default.

Needs: pip install tokenizers safetensors transformers torch numpy

  huggingface.py vectors DIR   write what tests/worker/nn compares with: a tokenizer and a tiny Llama
                               that these libraries made, with their ids and logits
  huggingface.py check FOLDER  open a model folder that prefgrid wrote: every tensor must find its
                               place, text must round-trip, the logits must be finite
"""
import json
import pathlib
import random
import sys

CORPUS = """Fix a crash when the window is closed twice. Don't free the cursor: it's shared.
configure.ac: require xproto 7.0.17 (or later), we've used its new keysyms since 2009-05-12.
Revert "sna: Avoid copying pixmaps"    This reverts commit 0123456789abcdef.
    dix: the grab isn't released;    they'll see a stuck button, we'd better warn about it!
naïve café façade, Größe, Übung, Ærø, Привет мир, 你好世界, こんにちは, emoji 😀 🎉 👍🏽.
\tif (ptr == NULL)\n\t\treturn BadAlloc;\r\n\n\n   trailing spaces   \n"""

PIECES = ["don't", "I'll", "we've", "it's", "they're", "I'm", "he'd", "'s", "''", "'T", " ", "  ",
          "   ", "\t", "\n", "\r\n", "\n\n ", "a", "B", "xyz", "012", "3", "9.5", "½", "²", "Ⅷ",
          "é", "e\u0301", "ß", "Ж", "привет", "你好", "こ", "😀", "👍🏽", "\u00a0", "\u2003",
          "\u3000", "\u180e", "\u200b", "\u0085", "\u2028", "!", "?!", "--", "->", "(", ")", "/",
          "_", "#", "configure.ac", " window", "crash", " the", "xorg", "\x00", "\x7f", "\ufeff",
          "ﬁ", "İ", "ǅ", "\U0001F468\u200d\U0001F469"]


def texts(count):
    draw = random.Random(7)
    made = ["", " ", "\n", CORPUS]
    while len(made) < count:
        if draw.random() < 0.6:
            made.append("".join(draw.choice(PIECES) for _ in range(draw.randint(1, 12))))
            continue
        code_points = []
        for _ in range(draw.randint(1, 10)):
            code = draw.choice([draw.randint(0, 0x24F), draw.randint(0, 0xD7FF),
                                draw.randint(0xE000, 0x2FFFF)])
            code_points.append(chr(code))
        made.append("".join(code_points))
    return made


def write_tokenizer(folder):
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=420, show_progress=False,
        special_tokens=[AddedToken("<|begin_of_text|>"), AddedToken("<|end_of_text|>")],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator([CORPUS], trainer)
    tokenizer.save(str(folder / "nn_tokenizer.json"))
    cases = [{"text": text, "ids": tokenizer.encode(text, add_special_tokens=False).ids}
             for text in texts(1500)]
    (folder / "nn_tokenizer_cases.json").write_text(
        json.dumps(cases, ensure_ascii=True, separators=(",", ":")).replace("},{", "},\n{") + "\n")


def write_llama(folder):
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM
    torch.manual_seed(3)
    config = LlamaConfig(vocab_size=40, hidden_size=16, intermediate_size=24, num_hidden_layers=2,
                         num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64,
                         rms_norm_eps=1e-5, rope_theta=10000.0, tie_word_embeddings=False,
                         initializer_range=0.3, attn_implementation="eager")
    model = LlamaForCausalLM(config).eval()
    target = folder / "nn_llama"
    model.save_pretrained(target)
    (target / "generation_config.json").unlink(missing_ok=True)
    tokens = [random.Random(5).randrange(40) for _ in range(48)]
    with torch.no_grad():
        logits = model(torch.tensor([tokens])).logits[0]
    rows = [[round(float(value), 6) for value in row] for row in logits]
    (target / "logits.json").write_text(
        json.dumps({"tokens": tokens, "logits": rows}).replace("], [", "],\n[") + "\n")


def check(folder):
    import torch
    from safetensors.torch import load_file
    from tokenizers import Tokenizer
    from transformers import AutoConfig, LlamaForCausalLM
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    wrong = sum(tokenizer.decode(tokenizer.encode(text, add_special_tokens=False).ids) != text
                for text in texts(3000))
    config = AutoConfig.from_pretrained(folder)
    model, info = LlamaForCausalLM.from_pretrained(folder, output_loading_info=True)
    tensors = load_file(folder / "model.safetensors")
    state = model.state_dict()
    differing = [name for name, tensor in tensors.items() if not torch.equal(state[name], tensor)]
    ids = tokenizer.encode("Fix a crash", add_special_tokens=False).ids
    with torch.no_grad():
        finite = bool(torch.isfinite(model(torch.tensor([ids])).logits).all())
    print(f"vocabulary {tokenizer.get_vocab_size()} of {config.vocab_size}, {wrong} texts wrong, "
          f"{len(tensors)} tensors, {len(differing)} differ, finite {finite}, loading {info}")
    ours = folder / "ids.json"  # [{"text", "ids"}] that prefgrid made, where there is one
    if ours.exists():
        cases = json.loads(ours.read_text())
        differ = [c for c in cases
                  if tokenizer.encode(c["text"], add_special_tokens=False).ids != c["ids"]]
        print(f"{len(cases)} texts encoded by prefgrid, {len(differ)} differ")
        wrong += len(differ)
    if wrong or differing or not finite or any(info.values()):
        sys.exit(1)


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in ("vectors", "check"):
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[2])
    if sys.argv[1] == "check":
        check(folder)
    else:
        write_tokenizer(folder)
        write_llama(folder)


if __name__ == "__main__":
    main()
