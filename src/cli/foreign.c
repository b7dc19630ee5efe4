/* foreign: words of other programs' command lines that are typed here, and what hone has in their place. Owns the list
 * alone: a word that hone knows never comes here. */
#include "cli/cli.h"

typedef struct entry {
    const char *words; /* space separated */
    const char *say;
} entry;

static const entry options[] = {
    { "-hf -hfr --hf-repo -hff --hf-file -mu --model-url",
      "models come with hone pull NAME, and then run with -m NAME" },
    { "-fa --flash-attn", "attention is always computed piece by piece here; leave it out" },
    { "-ngl --gpu-layers --n-gpu-layers -dev --device -sm --split-mode -ts --tensor-split -mg --main-gpu",
      "hone runs on the CPU; leave it out" },
    { "-ctk --cache-type-k -ctv --cache-type-v", "keys and values have one type: --kv f16, f32 or q8_0" },
    { "-cnv --conversation -i --interactive -if --interactive-first", "a conversation is: hone chat -m MODEL" },
    { "-no-cnv --no-conversation", "hone run goes on with the text as it is; leave it out" },
    { "-st --single-turn -sys --system-prompt", "one question and its answer: hone run --chat --system TEXT -p TEXT" },
    { "-e --escape --no-escape", "the text is taken as it is; line ends come from a file: -f FILE" },
    { "--mlock --no-mmap --mmap -mmp --direct-io", "files are mapped and shared; leave it out" },
    { "-b --batch-size", "tokens of a prompt at once: --chunk N" },
    { "--color -co --log-disable --simple-io", "only text goes to standard output; leave it out" },
    { "--no-display-prompt", "the prompt is left out with --no-echo" },
    { "-r --reverse-prompt", "generation stops at a text with --stop TEXT" },
    { "--max-tokens --max-new-tokens --num-predict --n-tokens", "the number of tokens is -n N" },
    { "--num-ctx --n-ctx --context-length --max-seq-len", "the size of the context is -c N" },
    { "--grammar --grammar-file -j -jf --json-schema --json-schema-file --format",
      "the form of an answer is for hone run: --json-schema FILE, --grammar FILE, --regex RE, --choice TEXT" },
    { "--typical --typical-p --mirostat --mirostat-lr --mirostat-ent --dynatemp-range --dynatemp-exp --xtc-probability "
      "--xtc-threshold --dry-multiplier --dry-base --dry-allowed-length --top-nsigma --samplers --sampling-seq "
      "--sampler-seq --logit-bias -l",
      "hone has temperature, top-k, top-p, min-p and three penalties: docs/SAMPLING.md" },
    { "--keep --context-shift --no-context-shift", "a full context is not shifted; it ends, or -c N makes it larger" },
    { "--rope-scaling --rope-scale --rope-freq-base --rope-freq-scale --yarn-orig-ctx --yarn-ext-factor "
      "--yarn-attn-factor --yarn-beta-slow --yarn-beta-fast",
      "rotation is what the model's file says" },
    { "--prompt-cache --prompt-cache-all --prompt-cache-ro", "sessions are kept with --state-out and --state-in FILE" },
    { "-tgt --draft --draft-max -md --model-draft -cd", "hone has no draft models" },
    { "-pg", "prompt and generation are measured side by side: -p N -n N" },
    { "-o --output --output-format --csv --md --jsonl --sql -oe",
      "what is printed: --json, or --format text, csv or md" },
    { "--no-warmup", "files are mapped and shared; hone bench has --warmup N" },
    { "--perf --verbose-prompt --show-timings --timings", "figures beside the text: -v, or --json" },
    { "--progress", "what takes long shows how far it is, on a terminal; leave it out" },
    { "--in-prefix --in-suffix --in-prefix-bos",
      "the model's template says how turns are written: hone chat -m MODEL" },
    { "-mli --multiline-input", "in hone chat a line that ends in \\ goes on in the next one" },
    { "--host --port", "programs are answered by: hone serve" },
    { "--kl-divergence --kl-divergence-base", "divergence from another model's logits: hone lab quality kl" },
    { "--hellaswag --hellaswag-tasks --winogrande --winogrande-tasks --multiple-choice --multiple-choice-tasks",
      "hone has no tests of questions; perplexity, and hone lab quality kl and similar compare models" },
    { "--ppl-stride", "a window every N tokens: --stride N" },
    { "--jinja --no-jinja", "templates are always run as Jinja; leave it out" },
    { "--lora-scaled", "an adapter and how much of it are one word: --lora FILE:SCALE" },
    { "-a --alias", "a model is given a name where it is served: -m NAME=FILE.gguf" },
    { "-cb --cont-batching -nocb --no-cont-batching --embedding --embeddings --rerank --reranking",
      "hone serve does what the model can without being asked; leave it out" },
    { "-to --timeout", "the longest time for a request is hone serve's --request-timeout S" },
    { "--no-webui --webui", "the page is left out by hone serve's --no-ui" },
    { "--keepalive --keep-alive", "models are unloaded by hone serve's --models-ttl S" },
    { "-mm --mmproj --mmproj-url --image --audio", "hone reads text alone" },
    { "--quantize --quantization --quant --bits --load-in-4bit --load-in-8bit --dtype",
      "weights are of the type that the file has: hone pull NAME:Q4_K_M, hone convert FOLDER --type Q4_K_M" },
    { "--model-path --model-dir", "a folder of transformers becomes a model by: hone convert DIR -o FILE.gguf; then -m "
                                  "FILE.gguf" },
    { "--model-type", "the file says what the model is; leave it out" },
    { "--download", "models come with: hone pull NAME" },
    { "--min --threshold --min-tok-s", "a rate that must be reached: --require 'decode_tok_s>=44'" },
    { "--pytorch-no-compile --pytorch-no-half --tinygrad-no-jit --mlx",
      "no other engine is in this build; other programs are measured by hone lab ab --cmd" },
    { "--full", "all of the catalogue is --suite full" },
    { "--prio --cpu-mask -C --cpu-range --numa --delay", "the system does that: taskset, nice, numactl" },
};

static const entry commands[] = {
    { "server api llama-server", "programs are answered by: hone serve -m FILE.gguf" },
    { "download fetch get", "models come with: hone pull NAME" },
    { "login logout signin signout whoami auth", "the hub is asked with the token in HF_TOKEN, where that is set" },
    { "ls models", "the models that are here: hone list" },
    { "info", "what a model is: hone show NAME; what its file holds: hone inspect FILE.gguf" },
    { "remove delete", "models are removed by: hone rm NAME" },
    { "cp copy push", "models are files; the shell's cp does it" },
    { "ps stop", "nothing runs behind a command that has ended; what hone serve has loaded is at its "
                 "/v1/models" },
    { "create finetune fine-tune lora", "a model learns by: hone train -m FILE.gguf --data FILE -o OUT.gguf" },
    { "quantize quantise quant llama-quantize",
      "a type is chosen where a model is made, hone convert FOLDER --type Q4_K_M -o OUT.gguf, or pulled, hone pull "
      "NAME:Q4_K_M" },
    { "gguf convert-hf-to-gguf convert_hf_to_gguf.py convert_hf_to_gguf",
      "a folder of transformers becomes a model by: hone convert FOLDER -o OUT.gguf" },
    { "export export-lora merge-lora llama-export-lora",
      "adapter and model become one by: hone merge -m FILE.gguf --lora "
      "ADAPTER -o OUT.gguf" },
    { "ppl llama-perplexity", "how well a model foresees a text: hone perplexity -m FILE.gguf -f TEXT.txt" },
    { "encode tokens llama-tokenize", "text to ids: hone tokenize -m FILE.gguf; and back: hone detokenize" },
    { "decode", "ids to text: hone detokenize -m FILE.gguf 1 2 3" },
    { "generate complete prompt cli simple llama-cli llama-run", "text from a prompt: hone run -m FILE.gguf -p TEXT" },
    { "completion completions",
      "the shell's is made by: hone help --completion bash, zsh or fish; text from a prompt: hone "
      "run -m FILE.gguf -p TEXT" },
    { "interactive talk", "a conversation: hone chat -m FILE.gguf" },
    { "benchmark llama-bench perf", "measuring: hone bench -m FILE.gguf" },
    { "bench-all bench-suite", "all of the catalogue: hone bench -m FILE.gguf --suite full" },
    { "eval evaluate",
      "how well a model foresees a text: hone perplexity; how far it is from another: hone lab quality kl" },
    { "imatrix llama-imatrix", "hone makes no importance matrices" },
    { "embedding embeddings llama-embedding", "vectors of texts: hone embed -m FILE.gguf" },
    { "diff compare", "two files of records: hone lab diff; two sides in interleaved rounds: hone lab ab" },
};

static const char *find(const entry *list, size_t n, const char *s, size_t len)
{
    for (size_t i = 0; i < n; i++)
        for (const char *w = list[i].words; *w;) {
            size_t k = strcspn(w, " ");
            if (k == len && memcmp(w, s, k) == 0) return list[i].say;
            w += k + (w[k] == ' ');
        }
    return NULL;
}

/* What stands for the word nearest to `word`, which is *near; NULL: none is near. */
static const char *find_near(const entry *list, size_t n, const char *word, const char **near)
{
    enum { MOST = 256 };
    static char all[4096];
    const char *words[MOST];
    size_t n_words = 0, at = 0;
    for (size_t i = 0; i < n; i++)
        for (const char *w = list[i].words; *w && n_words < MOST;) {
            size_t k = strcspn(w, " ");
            if (at + k + 1 > sizeof all) break;
            words[n_words++] = memcpy(all + at, w, k);
            all[at + k] = 0;
            at += k + 1;
            w += k + (w[k] == ' ');
        }
    *near = hn_nearest(word, words, n_words);
    return *near ? find(list, n, *near, strlen(*near)) : NULL;
}

const char *hn_foreign_option(const char *word)
{
    return find(options, sizeof options / sizeof *options, word, strcspn(word, "="));
}
const char *hn_foreign_command(const char *word)
{
    return find(commands, sizeof commands / sizeof *commands, word, strlen(word));
}
const char *hn_foreign_near(const char *word, const char **near)
{
    if (word[0] == '-') return find_near(options, sizeof options / sizeof *options, word, near);
    return find_near(commands, sizeof commands / sizeof *commands, word, near);
}
