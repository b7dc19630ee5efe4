/* hf_words_split: which rules of tokenizer.json's pre_tokenizer each kind of split.c stands for. One table, read both
 * ways: a folder's rules are looked up as they are written (several writings of one kind are several rows), and the
 * first row of a kind is what is written back. Refuses to know how text is divided. */
#include "forge/hf_words.h"

/* What expressions share. */
#define CI "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define WORD "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+"
#define PREFIX "[^\\r\\n\\p{L}\\p{N}]?"
#define MARKS "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*"
#define SLASH "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*"
#define WHITE "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define CAT1 CI "|" WORD "|\\p{N}" MARKS WHITE
#define CAT3 CI "|" WORD "|\\p{N}{1,3}" MARKS WHITE
#define UP "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOW "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define CASED(ci) PREFIX UP "*" LOW "+" ci "|" PREFIX UP "+" LOW "*" ci
#define GPT2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
#define DEEPSEEK                                                                                          \
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| " \
    "?[\\p{P}\\p{S}]+[\\r\\n]*" WHITE
#define CJK_A "[一-龥ࠀ-一가-퟿]+"
#define CJK_B "[一-龥぀-ゟ゠-ヿ]+"
#define BLOOM " ?[^(\\s|[.,!?…。，、।۔،])]+"
/* Cased letters as the tokenizer lists them: split.c has the same as ranges. */
#define LETTERS                                                                                            \
    "A-Za-z\xC2\xB5\xC3\x80-\xC3\x96\xC3\x98-\xC3\xB6\xC3\xB8-\xC6\xBA\xC6\xBC-\xC6\xBF\xC7\x84-\xCA\x93"  \
    "\xCA\x95-\xCA\xAF\xCD\xB0-\xCD\xB3\xCD\xB6\xCD\xB7\xCD\xBB-\xCD\xBD\xCD\xBF\xCE\x86\xCE\x88-\xCE\x8A" \
    "\xCE\x8C\xCE\x8E-\xCE\xA1\xCE\xA3-\xCF\xB5\xCF\xB7-\xD2\x81\xD2\x8A-\xD4\xAF\xD4\xB1-\xD5\x96"        \
    "\xE1\x82\xA0-\xE1\x83\x85\xE1\x8E\xA0-\xE1\x8F\xB5\xE1\x8F\xB8-\xE1\x8F\xBD\xE1\xB2\x90-\xE1\xB2\xBA" \
    "\xE1\xB2\xBD-\xE1\xB2\xBF\xE1\xB4\x80-\xE1\xB4\xAB\xE1\xB5\xAB-\xE1\xB5\xB7\xE1\xB5\xB9-\xE1\xB6\x9A" \
    "\xE1\xB8\x80-\xE1\xBC\x95\xE1\xBC\x98-\xE1\xBC\x9D\xE1\xBC\xA0-\xE1\xBD\x85\xE1\xBD\x88-\xE1\xBD\x8D" \
    "\xE1\xBD\x90-\xE1\xBD\x97\xE1\xBD\x99\xE1\xBD\x9B\xE1\xBD\x9D\xE1\xBD\x9F-\xE1\xBD\xBD\xE1\xBE\x80-"  \
    "\xE1\xBE\xB4\xE1\xBE\xB6-\xE1\xBE\xBC\xE1\xBE\xBE\xE1\xBF\x82-\xE1\xBF\x84\xE1\xBF\x86-\xE1\xBF\x8C"  \
    "\xE1\xBF\x90-\xE1\xBF\x93\xE1\xBF\x96-\xE1\xBF\x9B\xE1\xBF\xA0-\xE1\xBF\xAC\xE1\xBF\xB2-\xE1\xBF\xB4" \
    "\xE1\xBF\xB6-\xE1\xBF\xBC\xE2\x84\x82\xE2\x84\x87\xE2\x84\x8A-\xE2\x84\x93\xE2\x84\x95\xE2\x84\x99-"  \
    "\xE2\x84\x9D\xE2\x84\xA4\xE2\x84\xA6\xE2\x84\xA8\xE2\x84\xAA-\xE2\x84\xAD\xE2\x84\xAF-\xE2\x84\xB4"   \
    "\xE2\x84\xB9\xE2\x84\xBC-\xE2\x84\xBF\xE2\x85\x85-\xE2\x85\x89\xE2\x85\x8E\xE2\x86\x83\xE2\x86\x84"   \
    "\xE2\xB0\x80-\xE2\xB1\xBB\xE2\xB1\xBE-\xE2\xB3\xA4\xE2\xB3\xAB-\xE2\xB3\xAE\xE2\xB3\xB2\xE2\xB3\xB3"  \
    "\xEA\x99\x80-\xEA\x99\xAD\xEA\x9A\x80-\xEA\x9A\x9B\xEA\x9C\xA2-\xEA\x9D\xAF\xEA\x9D\xB1-\xEA\x9E\x87" \
    "\xEA\x9E\x8B-\xEA\x9E\x8E\xEA\xAD\xB0-\xEA\xAE\xBF\xEF\xAC\x80-\xEF\xAC\x86\xEF\xAC\x93-\xEF\xAC\x97" \
    "\xEF\xBC\xA1-\xEF\xBC\xBA\xEF\xBD\x81-\xEF\xBD\x9A\xF0\x90\x90\x80-\xF0\x90\x91\x8F\xF0\x90\x92\xB0-" \
    "\xF0\x90\x93\x93\xF0\x90\x93\x98-\xF0\x90\x93\xBB\xF0\x90\xB2\x80-\xF0\x90\xB2\xB2\xF0\x90\xB3\x80-"  \
    "\xF0\x90\xB3\xB2\xF0\x91\xA2\xA0-\xF0\x91\xA3\x9F\xF0\x9E\xA4\x80-\xF0\x9E\xA5\x83"
#define WIDE_PUNCT "\\s?[!-/:-~！-／：-～‘-‟\xE3\x80\x80-。]+"
#define AFMOE_ASIAN                                                                                                \
    "[\\x{4E00}-\\x{9FFF}\\x{3400}-\\x{4DBF}\\x{F900}-\\x{FAFF}\\x{3040}-\\x{309F}\\x{30A0}-\\x{30FF}\\x{FF65}-"   \
    "\\x{FF9F}\\x{2F00}-\\x{2FDF}\\x{0E40}-\\x{0E7F}\\x{0E80}-\\x{0EFF}\\x{1780}-\\x{17FF}\\x{1000}-\\x{109F}\\x{" \
    "AA60}-"                                                                                                       \
    "\\x{AA7F}\\x{A9E0}-\\x{A9FF}\\x{AC00}-\\x{D7AF}\\x{1100}-\\x{11FF}]+"
#define YOUTU_CJK \
    "[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥぀-ゟ゠-ヿ]+"
#define NO_HAN_UP "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]"
#define NO_HAN_LOW "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]"
#define R(x) "regex " x "\n"

enum { EITHER, WHOLE, PARTS }; /* ignore_merges that the kind stands for */

static const struct {
    const char *pre, *rules;
    int whole;
} rows[] = {
    { "gpt-2", "gpt2\n", PARTS },
    { "gpt-2", R(GPT2), PARTS },
    { "llama-bpe", R(CAT3), WHOLE },
    { "smaug-bpe", R(CAT3), PARTS },
    { "minicpm5", R("\\p{N}{1,3}") R(CI "|" WORD "|\\p{N}+" MARKS WHITE), WHOLE },
    { "qwen2", R(CAT1), PARTS },
    { "qwen35", R(CI "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*" WHITE),
      PARTS },
    { "starcoder", "digits\ngpt2\n", PARTS },
    { "starcoder", R("\\p{N}") "gpt2\n", PARTS },
    { "default", R("[\\p{P}$+<=>^~|]+") R(GPT2) R("\\p{N}+") R("[0-9][0-9][0-9]"), PARTS },
    { "falcon", "punctuation\ngpt2\n" R("[0-9][0-9][0-9]"), PARTS },
    { "deepseek-coder", R("[\\r\\n]") R("\\s?\\p{L}+") R("\\s?\\p{P}+") R(CJK_A) "digits\n", PARTS },
    { "deepseek-coder", R("[\\r\\n]") R("\\s?\\p{L}+") R("\\s?\\p{P}+") R(CJK_A) R("\\p{N}"), PARTS },
    { "deepseek-llm", R("[\\r\\n]") R("\\s?[" LETTERS "]+") R(WIDE_PUNCT) R("\\s+$") R(CJK_A) "digit-runs\n", PARTS },
    { "deepseek-v3", R("\\p{N}{1,3}") R(CJK_B) R(DEEPSEEK), PARTS },
    { "tekken", R(CASED("") "|\\p{N}" SLASH WHITE), WHOLE },
    { "gpt-4o", R(CASED(CI "?") "|\\p{N}{1,3}" SLASH WHITE), PARTS },
    { "granite-embed-multi-97m", R(CASED(CI "?") "|\\p{N}{1,3}" SLASH WHITE), WHOLE },
    { "tiny_aya", R("\\d{1,3}(?=(?:\\d{3})*\\b)") R(CASED(CI "?") "|\\p{N}{1,3}" SLASH WHITE), PARTS },
    { "superbpe", R("\\p{N}+") R("(?=(\\d{3})+(?!\\d))"), PARTS },
    { "afmoe", R("\\p{N}{1,3}(?=(?:\\p{N}{3})*(?!\\p{N}))") R(AFMOE_ASIAN) R(DEEPSEEK), PARTS },
    { "spark2_5",
      R("\\p{N}{1,3}") R(CJK_B)
          R("[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| "
            "?[\\p{P}\\p{S}]+|[\\r\\n]|\\s+(?!\\S)|\\s+") R("\\p{N}"),
      PARTS },
    { "ufakzeka", R(WORD "|\\p{N}" MARKS WHITE), PARTS },
    { "laguna", R("[^\\n]+|[\\n]+") R(CAT1), PARTS },
    { "youtu", R(YOUTU_CJK) R(CASED(CI "?") "|\\p{N}" SLASH WHITE), WHOLE },
    { "seed-coder", R(CI "|" WORD "|\\p{N}| ?[^\\s\\p{L}\\p{N}\\r\\n]+" WHITE), PARTS },
    { "seed-coder",
      R("(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|" WORD
        "|\\p{N}{1}| ?[^\\s\\p{L}\\p{N}\\r\\n]+" WHITE),
      PARTS },
    { "bailingmoe",
      R("'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}| "
        "?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+"),
      PARTS },
    { "bloom", R(" ?[^(\\s|.,!?…。，、।۔،)]+"), PARTS },
    { "bloom", R(BLOOM), PARTS },
    { "viking", R(" ?[^(\\s|.,!?…。，、।۔،)]+") "digits\n", PARTS },
    { "viking", R(" ?[^(\\s|.,!?…。，、।۔،)]+") R("\\p{N}"), PARTS },
    { "chameleon",
      R("<sentinel:[0-9]+>") R("(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z")
          R("([\\t\\n]|    |  )") "digits\npunctuation-apart\n"
                                  "gpt2\n",
      PARTS },
    { "exaone-moe",
      R(CI "|" PREFIX
           "(?:\\p{L}\\p{M}*(?: \\p{L}\\p{M}*)*)+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]?|\\s*[\\r\\n]|\\s+(?!"
           "\\S)|\\s+"),
      PARTS },
    { "jais-2",
      R(CI "|" WORD "|\\p{N}{1,3}" MARKS
           "|\\s*[\\r\\n]+|\\s{512}(?!\\S)|\\s{256}(?!\\S)|\\s{128}(?!\\S)|\\s{64}(?!\\S)|"
           "\\s{32}(?!\\S)|\\s{16}(?!\\S)|\\s{8}(?!\\S)|\\s{4}(?!\\S)|\\s{1,2}(?!\\S)|\\s{1}"),
      PARTS },
    { "kimi-k2",
      R("[\\p{Han}]+|" PREFIX NO_HAN_UP "*" NO_HAN_LOW "+" CI "?|" PREFIX NO_HAN_UP "+" NO_HAN_LOW "*" CI
        "?|\\p{N}{1,3}" MARKS WHITE),
      WHOLE },
};

static bool has(const hn_hf_words *w, const char *text) { return hn_hf_words_find(w, text, strlen(text)) >= 0; }

const char *hn_hf_pre_of(const char *rules, bool whole, const hn_hf_words *w)
{
    const char *best = NULL;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(rows[i].rules, rules)) continue;
        if (!best || rows[i].whole == (whole ? WHOLE : PARTS)) best = rows[i].pre;
    }
    if (best && (!strcmp(best, "smaug-bpe") || !strcmp(best, "llama-bpe"))) /* one expression, told apart by tokens */
        return has(w, "[gMASK]") ? "glm4" : whole || has(w, "<|begin_of_text|>") ? "llama-bpe" : "smaug-bpe";
    return best;
}

/* Names that divide as another's first name does; each is one word of a line whose first word is in rows. */
static const char *const same_as[] = {
    ("gpt-2 phi-2 mpt olmo jais exaone4 gigachat a.x-4.0 mellum modern-bert jina-es jina-de jina-v1-en jina-v2-es "
     "jina-v2-de jina-v2-code roberta-bpe trillion granite-docling"),
    "llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano glm4 glm5",
    "smaug-bpe dbrx chatglm-bpe",
    "qwen2 deepseek-r1-qwen hunyuan solar-open grok-2 kormo openpangu f2llmv2 stablelm2 megrez",
    "starcoder refact codeshell exaone minerva-7b mellum2 smollm command-r cohere2_moe",
    "deepseek-v3 hunyuan-dense joyai-llm hy_v4",
    "gpt-4o llama4 kanana2 minimax-m2 talkie",
    "tiny_aya cohere2moe",
    "bailingmoe bailingmoe2 llada-moe",
    "bloom gpt3-finnish poro-chat",
};

static bool is_word_of(const char *line, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = line; *p;) {
        size_t k = strcspn(p, " ");
        if (k == n && !memcmp(p, word, n)) return true;
        p += k + (p[k] == ' ');
    }
    return false;
}

const char *hn_hf_rules_of(const char *pre, bool *whole)
{
    char first[32] = "";
    snprintf(first, sizeof first, "%s", pre);
    for (size_t i = 0; i < sizeof same_as / sizeof *same_as; i++)
        if (is_word_of(same_as[i], pre))
            snprintf(first, sizeof first, "%.*s", (int)strcspn(same_as[i], " "), same_as[i]);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(rows[i].pre, first)) {
            *whole = rows[i].whole == WHOLE;
            return rows[i].rules;
        }
    return NULL;
}
