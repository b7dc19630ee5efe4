/* foreign: words of other programs' command lines that are typed here, and what hone has in their place. Owns the list
 * alone: a word that hone knows never comes here. */
#include "cli/cli.h"

typedef struct entry {
    const char *words; /* space separated */
    const char *say;
    const char *has; /* counts for commands with this option, which `say` names; NULL: for all */
} entry;

static const entry options[] = {
    { "-hf -hfr --hf-repo -hff --hf-file -mu --model-url", "models come with hone pull NAME; then they are -m NAME",
      "model" },
    { "-hf -hfr --hf-repo -hff --hf-file -mu --model-url", "models come with: hone pull NAME", NULL },
    { "-fa --flash-attn", "attention is always computed piece by piece here; leave it out", NULL },
    { "-ngl --gpu-layers --n-gpu-layers -dev --device -sm --split-mode -ts --tensor-split -mg --main-gpu",
      "hone runs on the CPU; leave it out", NULL },
    { "-ctk --cache-type-k -ctv --cache-type-v", "keys and values have one type: --kv f16, f32 or q8_0", "kv" },
    { "-cnv --conversation -i --interactive -if --interactive-first", "a conversation is: hone chat -m MODEL", NULL },
    { "-no-cnv --no-conversation", "hone run goes on with the text as it is; leave it out", NULL },
    { "-st --single-turn -sys --system-prompt", "one question and its answer: hone run --chat --system TEXT -p TEXT",
      NULL },
    { "-e --escape --no-escape", "the text is taken as it is; line ends come from a file: -f FILE", "prompt" },
    { "-e --escape --no-escape", "the text is taken as it is; leave it out", NULL },
    { "--mlock --no-mmap --mmap -mmp --direct-io", "files are mapped and shared; leave it out", NULL },
    { "-b --batch-size", "tokens of a prompt at once: --chunk N", "chunk" },
    { "-b --batch-size --per-device-train-batch-size --per_device_train_batch_size --micro-batch-size "
      "--train-batch-size",
      "sequences of a micro-batch: --batch N", "batch" },
    { "--gradient-accumulation-steps --gradient_accumulation_steps --grad-accum", "micro-batches of a step: --accum N",
      "accum" },
    { "--warmup-ratio --warmup_ratio --warmup-steps --warmup_steps",
      "steps in which the rate rises, or below 1 a share of all: --warmup N", "warmup" },
    { "--learning-rate --learning_rate", "the learning rate: --lr X", "lr" },
    { "--num-train-epochs --num_train_epochs --num-epochs", "passes over the data: --epochs X", "epochs" },
    { "--max-steps --max_steps --iters", "optimizer steps: --steps N", "steps" },
    { "--lora-r --lora_r --lora-rank --lora_rank", "the rank of the adapters: --rank N", "rank" },
    { "--lora-alpha --lora_alpha", "the scale of the adapters: --alpha X", "alpha" },
    { "--lora-dropout --lora_dropout", "what is left out at random: --dropout X", "dropout" },
    { "--target-modules --target_modules --lora-target-modules --lora-target",
      "matrices that get adapters: --targets LIST", "targets" },
    { "--lr-scheduler-type --lr_scheduler_type --lr-scheduler", "how the rate falls: --schedule NAME", "schedule" },
    { "--output-dir --output_dir", "the output is a file: -o FILE.gguf", "peft" },
    { "--dataset --dataset-name --dataset_name --train-data --train-file", "what to learn: --data FILE", "data" },
    { "--max-seq-length --max_seq_length --max-seq-len --max-length --max_length --cutoff-len --cutoff_len -c "
      "--ctx-size "
      "--n-ctx",
      "tokens of a sequence: --seq N", "seq" },
    { "--gradient-checkpointing --gradient_checkpointing", "less memory, more work: --recompute", "recompute" },
    { "--outfile", "the output: -o FILE.gguf", "output" },
    { "--outtype", "the type of the weights: --type F16, Q8_0, Q4_K_M …", "type" },
    { "--color -co --log-disable --simple-io", "only text goes to standard output; leave it out", NULL },
    { "--no-display-prompt", "prompts are not printed here; leave it out", NULL },
    { "-r --reverse-prompt", "a text that generation stops at is for hone run: --stop TEXT", NULL },
    { "--max-tokens --max-new-tokens --num-predict --n-tokens -n --predict --n-predict",
      "requests say how many tokens they want (max_tokens); leave it out", "parallel" },
    { "--max-tokens --max-new-tokens --num-predict --n-tokens", "the number of tokens is -n N", "n-predict" },
    { "--max-tokens --max-new-tokens --num-predict --n-tokens", "the number of tokens is -n N", "n-gen" },
    { "--num-ctx --n-ctx --context-length --max-seq-len --max-seq-length --max-model-len --max_model_len",
      "the size of the context is -c N", "ctx-size" },
    { "--served-model-name --served_model_name", "a model is given a name with it: -m NAME=FILE.gguf", "parallel" },
    { "--gpu-memory-utilization --gpu_memory_utilization",
      "memory of conversations is --kv-memory SIZE; hone runs on the CPU", "kv-memory" },
    { "--max-num-seqs --max_num_seqs", "requests at once: --parallel N", "parallel" },
    { "--tensor-parallel-size -tp --tensor_parallel_size", "hone runs on the CPU; leave it out", NULL },
    { "--grammar --grammar-file -j -jf --json-schema --json-schema-file",
      "the form of an answer is for hone run: --json-schema FILE, --grammar FILE, --regex RE, --choice TEXT", NULL },
    { "--format",
      "the form of an answer is for hone run: --json-schema FILE, --grammar FILE, --regex RE, --choice TEXT", "temp" },
    { "--typical --typical-p --mirostat --mirostat-lr --mirostat-ent --dynatemp-range --dynatemp-exp --xtc-probability "
      "--xtc-threshold --dry-multiplier --dry-base --dry-allowed-length --top-nsigma --samplers --sampling-seq "
      "--sampler-seq --logit-bias -l",
      "hone has temperature, top-k, top-p, min-p and three penalties: docs/SAMPLING.md", "temp" },
    { "--keep --context-shift --no-context-shift", "a full context is not shifted; it ends, or -c N makes it larger",
      "ctx-size" },
    { "--rope-scaling --rope-scale --rope-freq-base --rope-freq-scale --yarn-orig-ctx --yarn-ext-factor "
      "--yarn-attn-factor --yarn-beta-slow --yarn-beta-fast",
      "rotation is what the model's file says", NULL },
    { "--prompt-cache --prompt-cache-all --prompt-cache-ro", "sessions are kept with --state-out and --state-in FILE",
      "state-in" },
    { "-tgt --draft --draft-max -md --model-draft -cd", "hone has no draft models", NULL },
    { "-pg", "prompt and generation are measured side by side: -p N -n N", "n-gen" },
    { "-o --output --output-format --csv --md --jsonl --sql -oe",
      "what is printed: --json, or --format text, csv or md", "format" },
    { "--format --output-format --csv --md --jsonl", "what is printed as JSON: --json", NULL },
    { "--no-warmup", "files are mapped and shared; hone bench has --warmup N", NULL },
    { "--perf --verbose-prompt --show-timings --timings", "figures beside the text: -v, or --json", NULL },
    { "--progress", "what takes long shows how far it is, on a terminal; leave it out", NULL },
    { "--in-prefix --in-suffix --in-prefix-bos", "the model's template says how turns are written: hone chat -m MODEL",
      NULL },
    { "-mli --multiline-input", "in hone chat a line that ends in \\ goes on in the next one", NULL },
    { "--host --port", "programs are answered by: hone serve", NULL },
    { "--kl-divergence --kl-divergence-base", "divergence from another model's logits: hone lab quality kl", NULL },
    { "--hellaswag --hellaswag-tasks --winogrande --winogrande-tasks --multiple-choice --multiple-choice-tasks",
      "hone has no tests of questions; perplexity, and hone lab quality kl and similar compare models", NULL },
    { "--ppl-stride", "a window every N tokens: --stride N", "stride" },
    { "--jinja --no-jinja", "templates are always run as Jinja; leave it out", NULL },
    { "--lora-scaled", "an adapter and how much of it are one word: --lora FILE:SCALE", "lora" },
    { "-a --alias", "a model is given a name where it is served: hone serve -m NAME=FILE.gguf", NULL },
    { "-cb --cont-batching -nocb --no-cont-batching --embedding --embeddings --rerank --reranking",
      "hone serve does what the model can without being asked; leave it out", NULL },
    { "-to --timeout", "the longest time for a request is hone serve's --request-timeout S", NULL },
    { "--no-webui --webui", "the page is left out by hone serve's --no-ui", NULL },
    { "--keepalive --keep-alive", "models are unloaded by hone serve's --models-ttl S", NULL },
    { "-mm --mmproj --mmproj-url --image --audio", "hone reads text alone", NULL },
    { "--quantize --quantization --quant --bits --load-in-4bit --load-in-8bit --dtype",
      "weights are of the type that the file has: hone pull NAME:Q4_K_M, hone convert FOLDER --type Q4_K_M", NULL },
    { "--model-path --model-dir",
      "a folder of transformers becomes a model by: hone convert DIR -o FILE.gguf; then it is -m FILE.gguf", "model" },
    { "--model-path --model-dir", "a folder of transformers becomes a model by: hone convert DIR -o FILE.gguf", NULL },
    { "--model-type", "the file says what the model is; leave it out", NULL },
    { "--download", "models come with: hone pull NAME", NULL },
    { "--min --threshold --min-tok-s", "a rate that must be reached: --require 'decode_tok_s>=44'", "require" },
    { "--pytorch-no-compile --pytorch-no-half --tinygrad-no-jit --mlx",
      "no other engine is in this build; other programs are measured by hone lab ab --cmd", NULL },
    { "--full", "all of the catalogue is --suite full", "suite" },
    { "--prio --cpu-mask -C --cpu-range --numa --delay", "the system does that: taskset, nice, numactl", NULL },
};

static const entry commands[] = {
    { "server api llama-server", "programs are answered by: hone serve -m FILE.gguf", NULL },
    { "download fetch get", "models come with: hone pull NAME", NULL },
    { "login logout signin signout whoami auth", "the hub is asked with the token in HF_TOKEN, where that is set",
      NULL },
    { "ls models", "the models that are here: hone list", NULL },
    { "info", "what a model is: hone show NAME; what its file holds: hone inspect FILE.gguf", NULL },
    { "remove delete", "models are removed by: hone rm NAME", NULL },
    { "cp copy push", "models are files; the shell's cp does it", NULL },
    { "ps stop",
      "nothing runs behind a command that has ended; what hone serve has loaded is at its "
      "/v1/models",
      NULL },
    { "create finetune fine-tune lora", "a model learns by: hone train -m FILE.gguf --data FILE -o OUT.gguf", NULL },
    { "quantize quantise quant llama-quantize",
      "a type is chosen where a model is made, hone convert FOLDER --type Q4_K_M -o OUT.gguf, or pulled, hone pull "
      "NAME:Q4_K_M",
      NULL },
    { "gguf convert-hf-to-gguf convert_hf_to_gguf.py convert_hf_to_gguf",
      "a folder of transformers becomes a model by: hone convert FOLDER -o OUT.gguf", NULL },
    { "export export-lora merge-lora llama-export-lora",
      "adapter and model become one by: hone merge -m FILE.gguf --lora "
      "ADAPTER -o OUT.gguf",
      NULL },
    { "ppl llama-perplexity", "how well a model foresees a text: hone perplexity -m FILE.gguf -f TEXT.txt", NULL },
    { "encode tokens llama-tokenize", "text to ids: hone tokenize -m FILE.gguf; and back: hone detokenize", NULL },
    { "decode", "ids to text: hone detokenize -m FILE.gguf 1 2 3", NULL },
    { "generate complete prompt cli simple llama-cli llama-run", "text from a prompt: hone run -m FILE.gguf -p TEXT",
      NULL },
    { "completion completions",
      "the shell's is made by: hone help --completion bash, zsh or fish; text from a prompt: hone "
      "run -m FILE.gguf -p TEXT",
      NULL },
    { "interactive talk", "a conversation: hone chat -m FILE.gguf", NULL },
    { "benchmark llama-bench perf", "measuring: hone bench -m FILE.gguf", NULL },
    { "bench-all bench-suite", "all of the catalogue: hone bench -m FILE.gguf --suite full", NULL },
    { "eval evaluate",
      "how well a model foresees a text: hone perplexity; how far it is from another: hone lab quality kl", NULL },
    { "imatrix llama-imatrix", "hone makes no importance matrices", NULL },
    { "embedding embeddings llama-embedding", "vectors of texts: hone embed -m FILE.gguf", NULL },
    { "diff compare", "two files of records: hone lab diff; two sides in interleaved rounds: hone lab ab", NULL },
};

/* cmd NULL: of words that are commands. */
static bool counts(const entry *e, const hn_command *cmd)
{
    char option[40];
    if (!e->has) return true;
    snprintf(option, sizeof option, "--%s", e->has);
    return cmd && hn_opts_knows(cmd, hn_common_groups, option);
}

static const char *find(const entry *list, size_t n, const hn_command *cmd, const char *s, size_t len)
{
    for (size_t i = 0; i < n; i++)
        for (const char *w = list[i].words; *w;) {
            size_t k = strcspn(w, " ");
            if (k == len && memcmp(w, s, k) == 0 && counts(&list[i], cmd)) return list[i].say;
            w += k + (w[k] == ' ');
        }
    return NULL;
}

/* What stands for the word nearest to `word`, which is *near; NULL: none is near. */
static const char *find_near(const entry *list, size_t n, const hn_command *cmd, const char *word, const char **near)
{
    enum { MOST = 400 };
    static char all[8192];
    const char *words[MOST];
    size_t n_words = 0, at = 0;
    for (size_t i = 0; i < n; i++)
        for (const char *w = list[i].words; *w && n_words < MOST;) {
            size_t k = strcspn(w, " ");
            if (at + k + 1 > sizeof all) break;
            if (counts(&list[i], cmd)) {
                words[n_words++] = memcpy(all + at, w, k);
                all[at + k] = 0;
                at += k + 1;
            }
            w += k + (w[k] == ' ');
        }
    *near = hn_nearest(word, words, n_words);
    return *near ? find(list, n, cmd, *near, strlen(*near)) : NULL;
}

const char *hn_foreign_option(const hn_command *cmd, const char *word)
{
    return find(options, sizeof options / sizeof *options, cmd, word, strcspn(word, "="));
}
const char *hn_foreign_command(const char *word)
{
    return find(commands, sizeof commands / sizeof *commands, NULL, word, strlen(word));
}
const char *hn_foreign_near(const hn_command *cmd, const char *word, const char **near)
{
    if (word[0] == '-') return find_near(options, sizeof options / sizeof *options, cmd, word, near);
    return find_near(commands, sizeof commands / sizeof *commands, cmd, word, near);
}
