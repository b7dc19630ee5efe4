/* hf_golden: of transformers in float64, by tests/dev/make_hf_golden.py: logits of the first four ids at position 5 and
 * at the last; the largest's id at each position. */
static const golden llama_golden = {
    { 0.3945913f, 0.4129641f, -1.4254627f, -0.1599026f },
    { -2.0498286f, -0.5503169f, 0.5832129f, -1.1625759f },
    { 5, 5, 5, 15, 17, 29, 6, 19, 31, 6, 10, 16 },
};
static const golden gemma2_golden = {
    { -2.4949965f, -1.3661865f, 0.4535419f, 2.7256706f },
    { 1.6498133f, 2.2346749f, -0.2578766f, -0.9268474f },
    { 1, 1, 31, 2, 2, 29, 9, 10, 2, 23, 11, 13 },
};
static const golden gpt2_golden = {
    { 0.5066966f, -1.2505474f, -0.5278614f, 0.1513897f },
    { 0.1035401f, -0.7180298f, -0.4183741f, 0.2012050f },
    { 22, 22, 22, 22, 22, 22, 22, 22, 22, 10, 22, 22 },
};
