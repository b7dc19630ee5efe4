/* ask_cases: bodies of requests for test_ask: those that are refused, with what is said; those that are taken, with the
 * conversation that they become. Written by hand after the descriptions of the APIs. */
#ifndef HN_TEST_ASK_CASES_H
#define HN_TEST_ASK_CASES_H

#include "serve/ask.h"

#include <stdlib.h>

static inline hn_limits ask_limits(void)
{
    hn_limits l = { .n_vocab = 1000, .n_ctx = 4096, .n_slots = 4 };
    hone_sampler_defaults(&l.defaults);
    return l;
}

/* By route, from memory of exactly its size. l NULL: the usual. */
static inline bool ask_of(hn_ask *a, const char *path, const char *body, const hn_limits *l, hn_refusal *r)
{
    hn_limits usual = ask_limits();
    const hn_voice *v = hn_voice_find("POST", path, true);
    size_t n = strlen(body);
    char *own = malloc(n ? n : 1);
    *r = (hn_refusal){ 0 };
    if (!v || !own) {
        free(own);
        return hn_refuse(r, 404, NULL, NULL, "no such route: %s", path);
    }
    memcpy(own, body, n);
    bool ok = hn_ask_read(a, v, own, n, l ? l : &usual, r);
    free(own);
    return ok;
}

typedef struct refused_case {
    const char *path, *body;
    int status;
    const char *code, *param, *says;
} refused_case;

#define C_PATH "/v1/chat/completions"
#define U "{\"role\":\"user\",\"content\":\"hi\"}"
#define CHAT_BAD(more, code, param)                                       \
    {                                                                     \
        C_PATH, "{\"messages\":[" U "]," more "}", 400, code, param, NULL \
    }
#define MSG_BAD(messages, code, param)                                \
    {                                                                 \
        C_PATH, "{\"messages\":" messages "}", 400, code, param, NULL \
    }
#define TEXT_BAD(more, code, param)                                              \
    {                                                                            \
        "/v1/completions", "{\"prompt\":\"a\"," more "}", 400, code, param, NULL \
    }
#define BODY_BAD(path, body, code, param)  \
    {                                      \
        path, body, 400, code, param, NULL \
    }
#define TOOL(inside) "\"tools\":[{\"type\":\"function\",\"function\":{" inside "}}]"
#define TYPE "invalid_type"
#define RANGE "out_of_range"
#define MISSING "missing_field"
#define NOT "unsupported_parameter"

static const refused_case refused_cases[] = {
    /* what others do with an answer and hone does not */
    CHAT_BAD("\"min_tokens\":5", NOT, "min_tokens"),
    CHAT_BAD("\"stop_token_ids\":[5]", NOT, "stop_token_ids"),
    CHAT_BAD("\"include_stop_str_in_output\":true", NOT, "include_stop_str_in_output"),
    CHAT_BAD("\"length_penalty\":1.5", NOT, "length_penalty"),
    TEXT_BAD("\"truncate_prompt_tokens\":7", NOT, "truncate_prompt_tokens"),
    CHAT_BAD("\"enable_thinking\":1", TYPE, "enable_thinking"),
    CHAT_BAD("\"reasoning\":\"low\"", TYPE, "reasoning"),
    CHAT_BAD("\"reasoning\":{\"effort\":\"lots\"}", RANGE, "reasoning.effort"),
    /* messages */
    BODY_BAD(C_PATH, "{}", MISSING, "messages"),
    BODY_BAD(C_PATH, "{\"messages\":null}", MISSING, "messages"),
    MSG_BAD("[]", MISSING, "messages"),
    MSG_BAD("{}", TYPE, "messages"),
    MSG_BAD("\"hi\"", TYPE, "messages"),
    MSG_BAD("[1]", TYPE, "messages[0]"),
    MSG_BAD("[\"x\"]", TYPE, "messages[0]"),
    MSG_BAD("[null]", TYPE, "messages[0]"),
    MSG_BAD("[{}]", MISSING, "messages[0].role"),
    MSG_BAD("[{\"content\":\"x\"}]", MISSING, "messages[0].role"),
    MSG_BAD("[{\"role\":null,\"content\":\"x\"}]", MISSING, "messages[0].role"),
    MSG_BAD("[{\"role\":1,\"content\":\"x\"}]", TYPE, "messages[0].role"),
    MSG_BAD("[{\"role\":\"bot\",\"content\":\"x\"}]", RANGE, "messages[0].role"),
    MSG_BAD("[{\"role\":\"function\",\"content\":\"x\",\"name\":\"f\"}]", RANGE, "messages[0].role"),
    MSG_BAD("[{\"role\":\"user\"}]", MISSING, "messages[0].content"),
    MSG_BAD("[{\"role\":\"user\",\"content\":null}]", MISSING, "messages[0].content"),
    MSG_BAD("[" U ",{\"role\":\"assistant\"}]", MISSING, "messages[1].content"),
    MSG_BAD("[" U ",{\"role\":\"assistant\",\"content\":null}]", MISSING, "messages[1].content"),
    MSG_BAD("[" U ",{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[]}]", MISSING, "messages[1].content"),
    MSG_BAD("[{\"role\":\"user\",\"content\":5}]", TYPE, "messages[0].content"),
    MSG_BAD("[{\"role\":\"user\",\"content\":{}}]", TYPE, "messages[0].content"),
    MSG_BAD("[{\"role\":\"user\",\"content\":true}]", TYPE, "messages[0].content"),
    MSG_BAD("[{\"role\":\"user\",\"content\":[\"x\"]}]", TYPE, "messages[0].content[0]"),
    MSG_BAD("[{\"role\":\"user\",\"content\":[{\"text\":\"x\"}]}]", MISSING, "messages[0].content[0].type"),
    MSG_BAD("[{\"role\":\"user\",\"content\":[{\"type\":3}]}]", TYPE, "messages[0].content[0].type"),
    MSG_BAD("[{\"role\":\"user\",\"content\":[{\"type\":\"text\"}]}]", MISSING, "messages[0].content[0].text"),
    MSG_BAD("[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":1}]}]", TYPE, "messages[0].content[0].text"),
    MSG_BAD(
        "[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"image_url\",\"image_url\":{"
        "\"url\":\"x\"}}]}]",
        NOT, "messages[0].content[1].type"),
    MSG_BAD("[{\"role\":\"user\",\"content\":[{\"type\":\"input_audio\",\"input_audio\":{}}]}]", NOT,
            "messages[0].content[0].type"),
    MSG_BAD("[{\"role\":\"user\",\"content\":[{\"type\":\"file\",\"file\":{}}]}]", NOT, "messages[0].content[0].type"),
    MSG_BAD("[{\"role\":\"user\",\"content\":\"x\",\"name\":7}]", TYPE, "messages[0].name"),
    MSG_BAD("[{\"role\":\"user\",\"content\":\"x\",\"name\":\"a\\u0000\"}]", TYPE, "messages[0].name"),
    MSG_BAD("[" U ",{\"role\":\"assistant\",\"content\":\"x\",\"reasoning_content\":[]}]", TYPE,
            "messages[1].reasoning_content"),
    MSG_BAD("[" U ",{\"role\":\"assistant\",\"content\":\"x\",\"reasoning\":{}}]", TYPE, "messages[1].reasoning"),
    MSG_BAD("[" U ",{\"role\":\"assistant\",\"content\":\"x\",\"audio\":{\"id\":\"a\"}}]", NOT, "messages[1].audio"),
    MSG_BAD("[" U ",{\"role\":\"assistant\",\"content\":\"x\",\"function_call\":{\"name\":\"f\"}}]", NOT,
            "messages[1].function_call"),
    MSG_BAD("[" U ",{\"role\":\"assistant\",\"tool_calls\":{}}]", TYPE, "messages[1].tool_calls"),
    MSG_BAD("[" U ",{\"role\":\"assistant\",\"tool_calls\":[1]}]", TYPE, "messages[1].tool_calls[0]"),
    MSG_BAD("[" U ",{\"role\":\"assistant\",\"tool_calls\":[{\"type\":\"function\"}]}]", MISSING,
            "messages[1].tool_calls[0].id"),
    MSG_BAD("[" U ",{\"role\":\"assistant\",\"tool_calls\":[{\"id\":5}]}]", TYPE, "messages[1].tool_calls[0].id"),
    MSG_BAD("[" U ",{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"c\",\"type\":\"custom\"}]}]", NOT,
            "messages[1].tool_calls[0].type"),
    MSG_BAD("[" U ",{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"c\"}]}]", MISSING,
            "messages[1].tool_calls[0].function"),
    MSG_BAD("[" U ",{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"c\",\"function\":[]}]}]", TYPE,
            "messages[1].tool_calls[0].function"),
    MSG_BAD("[" U ",{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"c\",\"function\":{}}]}]", MISSING,
            "messages[1].tool_calls[0].function.name"),
    MSG_BAD("[" U
            ",{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"c\",\"function\":{\"name\":\"f\",\"arguments\":1}}]}]",
            TYPE, "messages[1].tool_calls[0].function.arguments"),
    MSG_BAD("[{\"role\":\"tool\",\"content\":\"x\"}]", MISSING, "messages[0].tool_call_id"),
    MSG_BAD("[{\"role\":\"tool\",\"content\":\"x\",\"tool_call_id\":1}]", TYPE, "messages[0].tool_call_id"),
    MSG_BAD("[" U ",{\"role\":\"tool\",\"content\":\"x\",\"tool_call_id\":\"c\"}]", RANGE, "messages[1].tool_call_id"),
    MSG_BAD("[" U ",{\"role\":\"assistant\",\"content\":\"a\"},{\"role\":\"assistant\",\"content\":\"b\"}]", RANGE,
            "messages[2]"),
    MSG_BAD("[" U
            ",{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"c\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}"
            "}]}]",
            RANGE, "messages"),

    /* what is to follow */
    CHAT_BAD("\"continue_final_message\":true", RANGE, "continue_final_message"),
    CHAT_BAD("\"continue_final_message\":1", TYPE, "continue_final_message"),
    CHAT_BAD("\"continue_final_message\":true,\"add_generation_prompt\":true", NOT, "continue_final_message"),
    CHAT_BAD("\"add_generation_prompt\":\"yes\"", TYPE, "add_generation_prompt"),

    /* sampling */
    CHAT_BAD("\"temperature\":\"hot\"", TYPE, "temperature"),
    CHAT_BAD("\"temperature\":true", TYPE, "temperature"),
    CHAT_BAD("\"temperature\":[1]", TYPE, "temperature"),
    CHAT_BAD("\"temperature\":-0.1", RANGE, "temperature"),
    CHAT_BAD("\"temperature\":5.01", RANGE, "temperature"),
    CHAT_BAD("\"top_p\":-0.001", RANGE, "top_p"),
    CHAT_BAD("\"top_p\":1.01", RANGE, "top_p"),
    CHAT_BAD("\"top_p\":-1", RANGE, "top_p"),
    CHAT_BAD("\"top_p\":{}", TYPE, "top_p"),
    CHAT_BAD("\"top_k\":3.5", TYPE, "top_k"),
    CHAT_BAD("\"top_k\":-2", RANGE, "top_k"),
    CHAT_BAD("\"top_k\":99999999999", RANGE, "top_k"),
    CHAT_BAD("\"min_p\":-0.5", RANGE, "min_p"),
    CHAT_BAD("\"min_p\":1.5", RANGE, "min_p"),
    CHAT_BAD("\"repeat_penalty\":0", RANGE, "repeat_penalty"),
    CHAT_BAD("\"repeat_penalty\":\"1\"", TYPE, "repeat_penalty"),
    CHAT_BAD("\"repeat_last_n\":-2", RANGE, "repeat_last_n"),
    CHAT_BAD("\"repeat_last_n\":2.5", TYPE, "repeat_last_n"),
    CHAT_BAD("\"presence_penalty\":2.1", RANGE, "presence_penalty"),
    CHAT_BAD("\"presence_penalty\":-2.1", RANGE, "presence_penalty"),
    CHAT_BAD("\"frequency_penalty\":3", RANGE, "frequency_penalty"),
    CHAT_BAD("\"frequency_penalty\":\"x\"", TYPE, "frequency_penalty"),
    CHAT_BAD("\"seed\":\"1\"", TYPE, "seed"),
    CHAT_BAD("\"seed\":1.5", TYPE, "seed"),
    CHAT_BAD("\"seed\":18446744073709551616", RANGE, "seed"),
    CHAT_BAD("\"seed\":1e30", RANGE, "seed"),
    CHAT_BAD("\"max_tokens\":-2", RANGE, "max_tokens"),
    CHAT_BAD("\"max_tokens\":1.5", TYPE, "max_tokens"),
    CHAT_BAD("\"max_tokens\":\"5\"", TYPE, "max_tokens"),
    CHAT_BAD("\"max_completion_tokens\":-2", RANGE, "max_completion_tokens"),
    CHAT_BAD("\"max_tokens\":5,\"max_completion_tokens\":6", RANGE, "max_completion_tokens"),
    CHAT_BAD("\"n_predict\":5,\"max_tokens\":6", RANGE, "max_tokens"),
    CHAT_BAD("\"n\":0", RANGE, "n"),
    CHAT_BAD("\"n\":5", RANGE, "n"),
    CHAT_BAD("\"n\":\"2\"", TYPE, "n"),
    CHAT_BAD("\"stop\":5", TYPE, "stop"),
    CHAT_BAD("\"stop\":{}", TYPE, "stop"),
    CHAT_BAD("\"stop\":[\"a\",1]", TYPE, "stop[1]"),
    CHAT_BAD("\"stop\":[\"a\\u0000b\"]", TYPE, "stop[0]"),
    CHAT_BAD("\"logit_bias\":5", TYPE, "logit_bias"),
    CHAT_BAD("\"logit_bias\":{\"x\":101}", RANGE, "logit_bias.x"),
    CHAT_BAD("\"logit_bias\":{\"\":1}", RANGE, "logit_bias."),
    CHAT_BAD("\"logit_bias\":{\"-1\":1}", RANGE, "logit_bias.-1"),
    CHAT_BAD("\"logit_bias\":{\"1000\":1}", RANGE, "logit_bias.1000"),
    CHAT_BAD("\"logit_bias\":{\"99999999999999999999\":1}", RANGE, "logit_bias.99999999999999999999"),
    CHAT_BAD("\"logit_bias\":{\"5\":101}", RANGE, "logit_bias.5"),
    CHAT_BAD("\"logit_bias\":{\"5\":\"x\"}", TYPE, "logit_bias.5"),
    CHAT_BAD("\"logit_bias\":{\"5\":true}", TYPE, "logit_bias.5"),
    CHAT_BAD("\"logit_bias\":[5]", TYPE, "logit_bias[0]"),
    CHAT_BAD("\"logit_bias\":[[5]]", TYPE, "logit_bias[0]"),
    CHAT_BAD("\"logit_bias\":[[5,1,1]]", TYPE, "logit_bias[0]"),
    CHAT_BAD("\"logit_bias\":[[1000,1]]", RANGE, "logit_bias[0][0]"),
    CHAT_BAD("\"logit_bias\":[[1,200]]", RANGE, "logit_bias[0][1]"),
    CHAT_BAD("\"logit_bias\":[[1.5,2]]", TYPE, "logit_bias[0][0]"),
    CHAT_BAD("\"mirostat\":2", NOT, "mirostat"),
    CHAT_BAD("\"xtc_probability\":0.5", NOT, "xtc_probability"),
    CHAT_BAD("\"dry_multiplier\":0.8", NOT, "dry_multiplier"),
    CHAT_BAD("\"typical_p\":0.9", NOT, "typical_p"),
    CHAT_BAD("\"top_n_sigma\":1", NOT, "top_n_sigma"),
    CHAT_BAD("\"adaptive_target\":0", NOT, "adaptive_target"),
    CHAT_BAD("\"adaptive_target\":true", NOT, "adaptive_target"),
    CHAT_BAD("\"dynatemp_range\":0.5", NOT, "dynatemp_range"),
    CHAT_BAD("\"samplers\":[\"top_p\",\"top_k\"]", NOT, "samplers"),
    CHAT_BAD("\"samplers\":[\"temperature\",\"min_p\"]", NOT, "samplers"),
    CHAT_BAD("\"samplers\":[\"min_p\",\"min_p\"]", NOT, "samplers"),
    CHAT_BAD("\"samplers\":[\"top_k\",\"penalties\"],\"repeat_penalty\":1.1", NOT, "samplers"),
    CHAT_BAD("\"samplers\":\"pk\"", NOT, "samplers"),
    CHAT_BAD("\"samplers\":\"ki\"", NOT, "samplers"),
    CHAT_BAD("\"samplers\":[\"top_k\",\"infill\"]", NOT, "samplers[1]"),
    CHAT_BAD("\"samplers\":[1]", TYPE, "samplers[0]"),
    CHAT_BAD("\"samplers\":{\"top_k\":1}", TYPE, "samplers"),

    CHAT_BAD("\"parse_tool_calls\":false", NOT, "parse_tool_calls"),
    CHAT_BAD("\"generation_prompt\":\"So\"", NOT, "generation_prompt"),
    CHAT_BAD("\"reasoning_budget_message\":\"So\"", NOT, "reasoning_budget_message"),
    CHAT_BAD("\"post_sampling_probs\":true", NOT, "post_sampling_probs"),
    CHAT_BAD("\"echo\":true", NOT, "echo"),
    CHAT_BAD("\"n_probs\":21", RANGE, "n_probs"),

    /* log-probabilities and streams */
    CHAT_BAD("\"logprobs\":1", TYPE, "logprobs"),
    CHAT_BAD("\"top_logprobs\":5", NOT, "top_logprobs"),
    CHAT_BAD("\"top_logprobs\":5,\"logprobs\":false", NOT, "top_logprobs"),
    CHAT_BAD("\"logprobs\":true,\"top_logprobs\":21", RANGE, "top_logprobs"),
    CHAT_BAD("\"logprobs\":true,\"top_logprobs\":-1", RANGE, "top_logprobs"),
    CHAT_BAD("\"logprobs\":true,\"top_logprobs\":\"3\"", TYPE, "top_logprobs"),
    CHAT_BAD("\"stream\":1", TYPE, "stream"),
    CHAT_BAD("\"stream\":\"true\"", TYPE, "stream"),
    CHAT_BAD("\"stream_options\":{}", NOT, "stream_options"),
    CHAT_BAD("\"stream\":false,\"stream_options\":{\"include_usage\":true}", NOT, "stream_options"),
    CHAT_BAD("\"stream\":true,\"stream_options\":true", TYPE, "stream_options"),
    CHAT_BAD("\"stream\":true,\"stream_options\":{\"include_usage\":1}", TYPE, "stream_options.include_usage"),
    CHAT_BAD("\"model\":5", TYPE, "model"),
    CHAT_BAD("\"store\":true", NOT, "store"),
    CHAT_BAD("\"store\":\"no\"", TYPE, "store"),
    CHAT_BAD("\"priority\":3", NOT, "priority"),
    CHAT_BAD("\"moderation\":{\"x\":1}", NOT, "moderation"),
    CHAT_BAD("\"modalities\":[\"text\",\"audio\"]", NOT, "modalities"),
    CHAT_BAD("\"modalities\":\"text\"", TYPE, "modalities"),
    CHAT_BAD("\"audio\":{\"voice\":\"x\"}", NOT, "audio"),
    CHAT_BAD("\"functions\":[]", NOT, "functions"),
    CHAT_BAD("\"function_call\":\"auto\"", NOT, "function_call"),
    CHAT_BAD("\"prediction\":{\"type\":\"content\"}", NOT, "prediction"),
    CHAT_BAD("\"web_search_options\":{}", NOT, "web_search_options"),
    CHAT_BAD("\"chat_template\":\"x\"", NOT, "chat_template"),
    CHAT_BAD("\"chat_parser\":\"x\"", NOT, "chat_parser"),
    CHAT_BAD("\"chat_format\":3", NOT, "chat_format"),
    CHAT_BAD("\"grammar_triggers\":[{}]", NOT, "grammar_triggers"),
    CHAT_BAD("\"grammar_lazy\":true", NOT, "grammar_lazy"),
    CHAT_BAD("\"preserved_tokens\":[1]", NOT, "preserved_tokens"),

    /* forms */
    CHAT_BAD("\"response_format\":\"json\"", TYPE, "response_format"),
    CHAT_BAD("\"response_format\":{}", MISSING, "response_format.type"),
    CHAT_BAD("\"response_format\":{\"type\":1}", TYPE, "response_format.type"),
    CHAT_BAD("\"response_format\":{\"type\":\"xml\"}", RANGE, "response_format.type"),
    CHAT_BAD("\"response_format\":{\"type\":\"json_schema\"}", MISSING, "response_format.json_schema"),
    CHAT_BAD("\"response_format\":{\"type\":\"json_schema\",\"json_schema\":[]}", TYPE, "response_format.json_schema"),
    CHAT_BAD("\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"x\"}}", MISSING,
             "response_format.json_schema.schema"),
    CHAT_BAD("\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"schema\":5}}", TYPE,
             "response_format.json_schema.schema"),
    CHAT_BAD("\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"schema\":{},\"strict\":1}}", TYPE,
             "response_format.json_schema.strict"),
    CHAT_BAD("\"response_format\":{\"type\":\"json_object\"},\"grammar\":\"root ::= x\"", NOT, "grammar"),
    CHAT_BAD("\"json_schema\":{},\"grammar\":\"root ::= x\"", NOT, "grammar"),
    CHAT_BAD("\"json_schema\":5", TYPE, "json_schema"),
    CHAT_BAD("\"grammar\":5", TYPE, "grammar"),
    CHAT_BAD("\"structured_outputs\":5", TYPE, "structured_outputs"),
    CHAT_BAD("\"structured_outputs\":{\"regex\":\"a\",\"json\":{}}", NOT, "structured_outputs.json"),
    CHAT_BAD("\"structured_outputs\":{\"choice\":[]}", RANGE, "structured_outputs.choice"),
    CHAT_BAD("\"structured_outputs\":{\"choice\":[\"\"]}", RANGE, "structured_outputs.choice[0]"),
    CHAT_BAD("\"structured_outputs\":{\"choice\":[1]}", TYPE, "structured_outputs.choice[0]"),
    CHAT_BAD("\"structured_outputs\":{\"choice\":\"x\"}", TYPE, "structured_outputs.choice"),
    CHAT_BAD("\"structured_outputs\":{\"structural_tag\":\"x\"}", NOT, "structured_outputs.structural_tag"),
    CHAT_BAD("\"guided_json\":5", TYPE, "guided_json"),
    CHAT_BAD("\"guided_regex\":\"a\",\"guided_choice\":[\"b\"]", NOT, "guided_choice"),
    CHAT_BAD("\"best_of\":2", NOT, "best_of"),
    CHAT_BAD("\"best_of\":3,\"n\":2", NOT, "best_of"),
    CHAT_BAD("\"best_of\":\"2\"", TYPE, "best_of"),

    /* tools */
    CHAT_BAD("\"tools\":{}", TYPE, "tools"),
    CHAT_BAD("\"tools\":[5]", TYPE, "tools[0]"),
    CHAT_BAD("\"tools\":[{}]", MISSING, "tools[0].type"),
    CHAT_BAD("\"tools\":[{\"type\":\"custom\",\"custom\":{\"name\":\"x\"}}]", NOT, "tools[0].type"),
    CHAT_BAD("\"tools\":[{\"type\":\"web_search\"}]", NOT, "tools[0].type"),
    CHAT_BAD("\"tools\":[{\"type\":\"function\"}]", MISSING, "tools[0].function"),
    CHAT_BAD("\"tools\":[{\"type\":\"function\",\"function\":\"f\"}]", TYPE, "tools[0].function"),
    CHAT_BAD(TOOL(""), MISSING, "tools[0].function.name"),
    CHAT_BAD(TOOL("\"name\":1"), TYPE, "tools[0].function.name"),
    CHAT_BAD(TOOL("\"name\":\"\""), RANGE, "tools[0].function.name"),
    CHAT_BAD(TOOL("\"name\":\"a b\""), RANGE, "tools[0].function.name"),
    CHAT_BAD(TOOL("\"name\":\"\xC3\xA4\""), RANGE, "tools[0].function.name"),
    CHAT_BAD(TOOL("\"name\":\"0123456789012345678901234567890123456789012345678901234567890123"
                  "0123456789012345678901234567890123456789012345678901234567890123x\""),
             RANGE, "tools[0].function.name"),
    CHAT_BAD(TOOL("\"name\":\"f\",\"parameters\":[]"), TYPE, "tools[0].function.parameters"),
    CHAT_BAD(TOOL("\"name\":\"f\",\"description\":3"), TYPE, "tools[0].function.description"),
    CHAT_BAD(TOOL("\"name\":\"f\",\"strict\":\"yes\""), TYPE, "tools[0].function.strict"),
    CHAT_BAD("\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\"}},{\"type\":\"function\",\"function\":{"
             "\"name\":"
             "\"f\"}}]",
             RANGE, "tools[1].function.name"),
    CHAT_BAD("\"tool_choice\":\"required\"", MISSING, "tools"),
    CHAT_BAD("\"tools\":[],\"tool_choice\":\"required\"", MISSING, "tools"),
    CHAT_BAD("\"tool_choice\":\"any\"", RANGE, "tool_choice"),
    CHAT_BAD("\"tool_choice\":5", TYPE, "tool_choice"),
    CHAT_BAD(TOOL("\"name\":\"f\"") ",\"tool_choice\":{}", MISSING, "tool_choice.type"),
    CHAT_BAD(TOOL("\"name\":\"f\"") ",\"tool_choice\":{\"type\":\"custom\",\"custom\":{}}", NOT, "tool_choice.type"),
    CHAT_BAD(TOOL("\"name\":\"f\"") ",\"tool_choice\":{\"type\":\"function\"}", MISSING, "tool_choice.name"),
    CHAT_BAD(TOOL("\"name\":\"f\"") ",\"tool_choice\":{\"type\":\"function\",\"function\":{}}", MISSING,
             "tool_choice.function.name"),
    CHAT_BAD(TOOL("\"name\":\"f\"") ",\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":\"g\"}}", RANGE,
             "tool_choice.function.name"),
    CHAT_BAD(TOOL("\"name\":\"f\"") ",\"tool_choice\":{\"type\":\"allowed_tools\"}", MISSING, "tool_choice.mode"),
    CHAT_BAD(
        TOOL("\"name\":\"f\"") ",\"tool_choice\":{\"type\":\"allowed_tools\",\"allowed_tools\":{\"mode\":\"auto\"}}",
        MISSING, "tool_choice.allowed_tools.tools"),
    CHAT_BAD(TOOL("\"name\":\"f\"") ",\"tool_choice\":{\"type\":\"allowed_tools\",\"allowed_tools\":{\"mode\":\"auto\","
                                    "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"g\"}}]}}",
             RANGE, "tool_choice.allowed_tools.tools[0].name"),
    CHAT_BAD(TOOL("\"name\":\"f\"") ",\"grammar\":\"root ::= x\"", NOT, "grammar"),
    CHAT_BAD(TOOL("\"name\":\"f\"") ",\"structured_outputs\":{\"regex\":\"x\"}", NOT, "structured_outputs.regex"),
    CHAT_BAD("\"parallel_tool_calls\":1", TYPE, "parallel_tool_calls"),
    CHAT_BAD("\"reasoning_effort\":\"huge\"", RANGE, "reasoning_effort"),
    CHAT_BAD("\"reasoning_effort\":3", TYPE, "reasoning_effort"),
    CHAT_BAD("\"reasoning_format\":\"raw\"", RANGE, "reasoning_format"),
    CHAT_BAD("\"reasoning_budget\":-2", RANGE, "reasoning_budget"),
    CHAT_BAD("\"chat_template_kwargs\":[]", TYPE, "chat_template_kwargs"),

    /* llama-server's and ours */
    CHAT_BAD("\"cache_prompt\":1", TYPE, "cache_prompt"),
    CHAT_BAD("\"cache_salt\":1", TYPE, "cache_salt"),
    CHAT_BAD("\"id_slot\":-2", RANGE, "id_slot"),
    CHAT_BAD("\"lora\":{}", TYPE, "lora"),
    CHAT_BAD("\"lora\":[1]", TYPE, "lora[0]"),
    CHAT_BAD("\"lora\":[{}]", MISSING, "lora[0].id"),
    CHAT_BAD("\"lora\":[{\"id\":-1}]", RANGE, "lora[0].id"),
    CHAT_BAD("\"lora\":[{\"id\":0,\"scale\":\"x\"}]", TYPE, "lora[0].scale"),
    CHAT_BAD("\"lora\":[{\"id\":0,\"scale\":1e9}]", RANGE, "lora[0].scale"),
    CHAT_BAD("\"t_max_predict_ms\":100", NOT, "t_max_predict_ms"),

    /* completions */
    BODY_BAD("/v1/completions", "{}", MISSING, "prompt"),
    BODY_BAD("/v1/completions", "{\"prompt\":null}", MISSING, "prompt"),
    BODY_BAD("/v1/completions", "{\"prompt\":5}", TYPE, "prompt"),
    BODY_BAD("/v1/completions", "{\"prompt\":{}}", TYPE, "prompt"),
    BODY_BAD("/v1/completions", "{\"prompt\":true}", TYPE, "prompt"),
    BODY_BAD("/v1/completions", "{\"prompt\":[]}", RANGE, "prompt"),
    BODY_BAD("/v1/completions", "{\"prompt\":[1,1000]}", RANGE, "prompt[1]"),
    BODY_BAD("/v1/completions", "{\"prompt\":[-1]}", RANGE, "prompt[0]"),
    BODY_BAD("/v1/completions", "{\"prompt\":[1.5]}", TYPE, "prompt[0]"),
    BODY_BAD("/v1/completions", "{\"prompt\":[[1],[2,\"a\",{}]]}", TYPE, "prompt[1][2]"),
    BODY_BAD("/v1/completions", "{\"prompt\":[\"a\",true]}", TYPE, "prompt[1]"),
    BODY_BAD("/v1/completions", "{\"prompt\":[1,true]}", TYPE, "prompt[1]"),
    TEXT_BAD("\"logprobs\":21", RANGE, "logprobs"),
    TEXT_BAD("\"logprobs\":-1", RANGE, "logprobs"),
    TEXT_BAD("\"logprobs\":\"5\"", TYPE, "logprobs"),
    TEXT_BAD("\"echo\":1", TYPE, "echo"),
    TEXT_BAD("\"best_of\":2", NOT, "best_of"),
    TEXT_BAD("\"suffix\":5", TYPE, "suffix"),
    TEXT_BAD("\"suffix\":\"x\",\"echo\":true", NOT, "echo"),
    TEXT_BAD("\"suffix\":\"x\",\"prompt_logprobs\":1", NOT, "prompt_logprobs"),
    TEXT_BAD("\"max_tokens\":-2", RANGE, "max_tokens"),
    TEXT_BAD("\"stream_options\":{}", NOT, "stream_options"),
    BODY_BAD("/v1/completions", "{\"prompt\":[1],\"suffix\":\"x\"}", TYPE, "prompt"),
    BODY_BAD("/v1/completions", "{\"prompt\":[\"a\",\"b\"],\"suffix\":\"x\"}", TYPE, "prompt"),

    /* llama-server's own */
    BODY_BAD("/completion", "{}", MISSING, "prompt"),
    BODY_BAD("/completion", "{\"prompt\":\"a\",\"n_predict\":-3}", RANGE, "n_predict"),
    BODY_BAD("/completion", "{\"prompt\":\"a\",\"n_predict\":1,\"max_tokens\":2}", RANGE, "max_tokens"),
    BODY_BAD("/completion", "{\"prompt\":\"a\",\"n_probs\":65}", RANGE, "n_probs"),
    BODY_BAD("/completion", "{\"prompt\":\"a\",\"response_fields\":\"x\"}", TYPE, "response_fields"),
    BODY_BAD("/completion", "{\"prompt\":\"a\",\"response_fields\":[1]}", TYPE, "response_fields[0]"),
    BODY_BAD("/infill", "{\"input_prefix\":\"a\"}", MISSING, "input_suffix"),
    BODY_BAD("/infill", "{\"input_suffix\":\"a\"}", MISSING, "input_prefix"),
    BODY_BAD("/infill", "{\"input_prefix\":1,\"input_suffix\":\"a\"}", TYPE, "input_prefix"),
    BODY_BAD("/infill", "{\"input_prefix\":\"\",\"input_suffix\":\"\",\"input_extra\":{}}", TYPE, "input_extra"),
    BODY_BAD("/infill", "{\"input_prefix\":\"\",\"input_suffix\":\"\",\"input_extra\":[{\"filename\":\"a\"}]}", MISSING,
             "input_extra[0].text"),
    BODY_BAD("/infill", "{\"input_prefix\":\"\",\"input_suffix\":\"\",\"prompt\":[1]}", TYPE, "prompt"),
    BODY_BAD("/tokenize", "{}", MISSING, "content"),
    BODY_BAD("/tokenize", "{\"content\":5}", TYPE, "content"),
    BODY_BAD("/tokenize", "{\"content\":\"a\",\"with_pieces\":1}", TYPE, "with_pieces"),
    BODY_BAD("/detokenize", "{}", MISSING, "tokens"),
    BODY_BAD("/detokenize", "{\"tokens\":5}", TYPE, "tokens"),
    BODY_BAD("/detokenize", "{\"tokens\":[5,\"x\"]}", TYPE, "tokens[1]"),
    BODY_BAD("/detokenize", "{\"tokens\":[1000]}", RANGE, "tokens[0]"),
    BODY_BAD("/apply-template", "{}", MISSING, "messages"),
    BODY_BAD(C_PATH "/input_tokens", "{}", MISSING, "messages"),

/* Anthropic's messages */
#define M_PATH "/v1/messages"
#define M_BAD(more, code, param) BODY_BAD(M_PATH, "{\"max_tokens\":9,\"messages\":[" U "]," more "}", code, param)
#define M_MSG(messages, code, param) BODY_BAD(M_PATH, "{\"max_tokens\":9,\"messages\":" messages "}", code, param)
    BODY_BAD(M_PATH, "{}", MISSING, "max_tokens"),
    BODY_BAD(M_PATH, "{\"messages\":[" U "]}", MISSING, "max_tokens"),
    BODY_BAD(M_PATH, "{\"messages\":[" U "],\"max_tokens\":0}", RANGE, "max_tokens"),
    BODY_BAD(M_PATH, "{\"messages\":[" U "],\"max_tokens\":\"9\"}", TYPE, "max_tokens"),
    BODY_BAD(M_PATH, "{\"max_tokens\":9}", MISSING, "messages"),
    M_MSG("[]", MISSING, "messages"),
    M_MSG("{}", TYPE, "messages"),
    M_MSG("[5]", TYPE, "messages[0]"),
    M_MSG("[{\"content\":\"x\"}]", MISSING, "messages[0].role"),
    M_MSG("[{\"role\":\"developer\",\"content\":\"x\"}]", RANGE, "messages[0].role"),
    M_MSG("[" U ",{\"role\":\"system\"}]", MISSING, "messages[1].content"),
    M_MSG("[" U ",{\"role\":\"system\",\"content\":5}]", TYPE, "messages[1].content"),
    M_MSG("[" U ",{\"role\":\"system\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"c\"}]}]", NOT,
          "messages[1].content[0].type"),
    M_MSG("[{\"role\":\"tool\",\"content\":\"x\"}]", RANGE, "messages[0].role"),
    M_MSG("[{\"role\":\"user\"}]", MISSING, "messages[0].content"),
    M_MSG("[{\"role\":\"user\",\"content\":5}]", TYPE, "messages[0].content"),
    M_MSG("[{\"role\":\"user\",\"content\":[5]}]", TYPE, "messages[0].content[0]"),
    M_MSG("[{\"role\":\"user\",\"content\":[{}]}]", MISSING, "messages[0].content[0].type"),
    M_MSG("[{\"role\":\"user\",\"content\":[{\"type\":\"text\"}]}]", MISSING, "messages[0].content[0].text"),
    M_MSG("[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":1}]}]", TYPE, "messages[0].content[0].text"),
    M_MSG("[{\"role\":\"user\",\"content\":[{\"type\":\"image\",\"source\":{}}]}]", NOT, "messages[0].content[0].type"),
    M_MSG("[{\"role\":\"user\",\"content\":[{\"type\":\"document\"}]}]", MISSING, "messages[0].content[0].source"),
    M_MSG("[{\"role\":\"user\",\"content\":[{\"type\":\"thinking\",\"thinking\":\"x\"}]}]", NOT,
          "messages[0].content[0].type"),
    M_MSG("[{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\"}]}]", MISSING,
          "messages[0].content[0].tool_use_id"),
    M_MSG("[{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"t\"}]}]", RANGE,
          "messages[0].content[0].tool_use_id"),
    M_MSG("[{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"f\",\"input\":{}}]},{"
          "\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"t\",\"content\":[{\"type\":"
          "\"image\"}]}]}]",
          NOT, "messages[1].content[0].content[0].type"),
    M_MSG("[{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"name\":\"f\"}]}]", MISSING,
          "messages[0].content[0].id"),
    M_MSG("[{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"t\"}]}]", MISSING,
          "messages[0].content[0].name"),
    M_MSG(
        "[{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"f\",\"input\":\"{}\"}]}]",
        TYPE, "messages[0].content[0].input"),
    M_MSG("[" U ",{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"f\",\"input\":{}}"
          "]}]",
          RANGE, "messages"),
    M_MSG("[{\"role\":\"assistant\",\"content\":[{\"type\":\"thinking\",\"signature\":\"\"}]}]", MISSING,
          "messages[0].content[0].thinking"),
    M_MSG("[{\"role\":\"assistant\",\"content\":[{\"type\":\"server_tool_use\"}]}]", NOT,
          "messages[0].content[0].type"),
    M_BAD("\"system\":5", TYPE, "system"),
    M_BAD("\"system\":[{\"type\":\"image\"}]", NOT, "system[0].type"),
    M_BAD("\"temperature\":1.1", RANGE, "temperature"),
    M_BAD("\"temperature\":\"1\"", TYPE, "temperature"),
    M_BAD("\"top_p\":2", RANGE, "top_p"),
    M_BAD("\"stop_sequences\":\"x\"", TYPE, "stop_sequences"),
    M_BAD("\"stop_sequences\":[\"\"]", RANGE, "stop_sequences[0]"),
    M_BAD("\"stop\":\"x\"", NOT, "stop"),
    M_BAD("\"n\":2", NOT, "n"),
    M_BAD("\"n_cmpl\":2", NOT, "n_cmpl"),
    M_BAD("\"container\":\"x\"", NOT, "container"),
    M_BAD("\"mcp_servers\":[{\"url\":\"x\"}]", NOT, "mcp_servers"),
    M_BAD("\"thinking\":true", TYPE, "thinking"),
    M_BAD("\"thinking\":{}", MISSING, "thinking.type"),
    M_BAD("\"thinking\":{\"type\":\"on\"}", RANGE, "thinking.type"),
    M_BAD("\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":0}", RANGE, "thinking.budget_tokens"),
    M_BAD("\"output_config\":{\"effort\":\"big\"}", RANGE, "output_config.effort"),
    M_BAD("\"output_config\":{\"format\":{\"type\":\"json_schema\"}}", MISSING, "output_config.format.schema"),
    M_BAD("\"output_config\":{\"format\":{\"type\":\"xml\"}}", RANGE, "output_config.format.type"),
    M_BAD("\"tools\":[{\"type\":\"web_search_20250305\",\"name\":\"web_search\"}]", NOT, "tools[0].type"),
    M_BAD("\"tools\":[{\"input_schema\":{}}]", MISSING, "tools[0].name"),
    M_BAD("\"tools\":[{\"name\":\"a b\",\"input_schema\":{}}]", RANGE, "tools[0].name"),
    M_BAD("\"tools\":[{\"name\":\"f\",\"input_schema\":[]}]", TYPE, "tools[0].input_schema"),
    M_BAD("\"tool_choice\":\"auto\"", TYPE, "tool_choice"),
    M_BAD("\"tool_choice\":{\"type\":\"required\"}", RANGE, "tool_choice.type"),
    M_BAD("\"tool_choice\":{\"type\":\"any\"}", MISSING, "tools"),
    M_BAD("\"tools\":[{\"name\":\"f\"}],\"tool_choice\":{\"type\":\"tool\"}", MISSING, "tool_choice.name"),
    M_BAD("\"tools\":[{\"name\":\"f\"}],\"tool_choice\":{\"type\":\"tool\",\"name\":\"g\"}", RANGE, "tool_choice.name"),
    M_BAD("\"tools\":[{\"name\":\"f\"}],\"tool_choice\":{\"type\":\"auto\",\"disable_parallel_tool_use\":1}", TYPE,
          "tool_choice.disable_parallel_tool_use"),
    BODY_BAD(M_PATH "/count_tokens", "{}", MISSING, "messages"),

/* responses */
#define R_PATH "/v1/responses"
#define R_BAD(more, code, param) BODY_BAD(R_PATH, "{\"input\":\"hi\"," more "}", code, param)
#define R_IN(input, code, param) BODY_BAD(R_PATH, "{\"input\":" input "}", code, param)
    BODY_BAD(R_PATH, "{}", MISSING, "input"),
    R_IN("5", TYPE, "input"),
    R_IN("[]", MISSING, "input"),
    R_IN("[5]", TYPE, "input[0]"),
    R_IN("[{}]", MISSING, "input[0].type"),
    R_IN("[{\"type\":\"item_reference\",\"id\":\"x\"}]", NOT, "input[0].type"),
    R_IN("[{\"type\":\"web_search_call\"}]", NOT, "input[0].type"),
    R_IN("[{\"type\":\"message\",\"content\":\"x\"}]", MISSING, "input[0].role"),
    R_IN("[{\"role\":\"tool\",\"content\":\"x\"}]", RANGE, "input[0].role"),
    R_IN("[{\"role\":\"user\"}]", MISSING, "input[0].content"),
    R_IN("[{\"role\":\"user\",\"content\":5}]", TYPE, "input[0].content"),
    R_IN("[{\"role\":\"user\",\"content\":[{\"type\":\"input_image\",\"image_url\":\"x\"}]}]", NOT,
         "input[0].content[0].type"),
    R_IN("[{\"role\":\"user\",\"content\":[{\"type\":\"input_text\"}]}]", MISSING, "input[0].content[0].text"),
    R_IN("[{\"type\":\"reasoning\",\"content\":5}]", TYPE, "input[0].content"),
    R_IN("[{\"type\":\"reasoning\",\"content\":[{\"type\":\"input_text\",\"text\":\"x\"}]}]", NOT,
         "input[0].content[0].type"),
    R_IN("[{\"type\":\"function_call\",\"name\":\"f\",\"arguments\":\"{}\"}]", MISSING, "input[0].call_id"),
    R_IN("[{\"type\":\"function_call\",\"call_id\":\"c\",\"arguments\":\"{}\"}]", MISSING, "input[0].name"),
    R_IN("[{\"type\":\"function_call\",\"call_id\":\"c\",\"name\":\"f\"}]", MISSING, "input[0].arguments"),
    R_IN("[{\"type\":\"function_call\",\"call_id\":\"c\",\"name\":\"f\",\"arguments\":{}}]", TYPE,
         "input[0].arguments"),
    R_IN("[{\"type\":\"function_call_output\",\"output\":\"x\"}]", MISSING, "input[0].call_id"),
    R_IN("[{\"type\":\"function_call_output\",\"call_id\":\"c\",\"output\":\"x\"}]", RANGE, "input[0].call_id"),
    R_IN("[{\"type\":\"function_call\",\"call_id\":\"c\",\"name\":\"f\",\"arguments\":\"{}\"},{\"type\":"
         "\"function_call_output\",\"call_id\":\"c\"}]",
         MISSING, "input[1].output"),
    R_BAD("\"instructions\":[1]", TYPE, "instructions"),
    R_BAD("\"max_output_tokens\":0", RANGE, "max_output_tokens"),
    R_BAD("\"max_tokens\":5", NOT, "max_tokens"),
    R_BAD("\"messages\":[]", NOT, "messages"),
    R_BAD("\"previous_response_id\":\"r\"", "previous_response_not_found", "previous_response_id"),
    R_BAD("\"conversation\":\"c\"", NOT, "conversation"),
    R_BAD("\"prompt\":{\"id\":\"p\"}", NOT, "prompt"),
    R_BAD("\"background\":true", NOT, "background"),
    R_BAD("\"store\":1", TYPE, "store"),
    R_BAD("\"truncation\":\"auto\"", NOT, "truncation"),
    R_BAD("\"include\":\"x\"", TYPE, "include"),
    R_BAD("\"include\":[1]", TYPE, "include[0]"),
    R_BAD("\"top_logprobs\":21", RANGE, "top_logprobs"),
    R_BAD("\"reasoning\":\"low\"", TYPE, "reasoning"),
    R_BAD("\"reasoning\":{\"effort\":\"x\"}", RANGE, "reasoning.effort"),
    R_BAD("\"text\":{\"format\":{\"type\":\"json_schema\",\"name\":\"x\"}}", MISSING, "text.format.schema"),
    R_BAD("\"text\":{\"format\":{\"type\":\"yaml\"}}", RANGE, "text.format.type"),
    R_BAD("\"text\":\"x\"", TYPE, "text"),
    R_BAD("\"metadata\":[]", TYPE, "metadata"),
    R_BAD("\"n\":2", NOT, "n"),
    R_BAD("\"n_cmpl\":2", NOT, "n_cmpl"),
    R_BAD("\"tools\":[{\"type\":\"web_search\"}]", NOT, "tools[0].type"),
    R_BAD("\"tools\":[{\"type\":\"custom\",\"name\":\"x\"}]", NOT, "tools[0].type"),
    R_BAD("\"tools\":[{\"type\":\"function\"}]", MISSING, "tools[0].name"),
    R_BAD("\"tools\":[{\"type\":\"function\",\"name\":\"f\"}],\"tool_choice\":{\"type\":\"web_search\"}", NOT,
          "tool_choice.type"),
    R_BAD("\"tools\":[{\"type\":\"function\",\"name\":\"f\"}],\"tool_choice\":{\"type\":\"function\",\"name\":\"g\"}",
          RANGE, "tool_choice.name"),
    R_BAD("\"tool_choice\":\"required\"", MISSING, "tools"),
    BODY_BAD(R_PATH "/input_tokens", "{}", MISSING, "input"),

/* ollama */
#define O_PATH "/api/chat"
#define O_BAD(more, code, param) BODY_BAD(O_PATH, "{\"messages\":[" U "]," more "}", code, param)
#define O_MSG(messages, code, param) BODY_BAD(O_PATH, "{\"messages\":" messages "}", code, param)
    O_MSG("5", TYPE, "messages"),
    O_MSG("[5]", TYPE, "messages[0]"),
    O_MSG("[{\"content\":\"x\"}]", MISSING, "messages[0].role"),
    O_MSG("[{\"role\":\"developer\",\"content\":\"x\"}]", RANGE, "messages[0].role"),
    O_MSG("[{\"role\":\"user\",\"content\":[]}]", TYPE, "messages[0].content"),
    O_MSG("[{\"role\":\"user\",\"content\":\"x\",\"images\":[\"aGk=\"]}]", NOT, "messages[0].images"),
    O_MSG("[{\"role\":\"assistant\",\"thinking\":5}]", TYPE, "messages[0].thinking"),
    O_MSG("[{\"role\":\"assistant\",\"tool_calls\":{}}]", TYPE, "messages[0].tool_calls"),
    O_MSG("[{\"role\":\"assistant\",\"tool_calls\":[{}]}]", MISSING, "messages[0].tool_calls[0].function"),
    O_MSG("[{\"role\":\"assistant\",\"tool_calls\":[{\"function\":{}}]}]", MISSING,
          "messages[0].tool_calls[0].function.name"),
    O_MSG("[{\"role\":\"assistant\",\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}]", TYPE,
          "messages[0].tool_calls[0].function.arguments"),
    O_MSG("[{\"role\":\"tool\",\"content\":\"x\",\"tool_call_id\":\"c\"}]", RANGE, "messages[0].tool_call_id"),
    O_BAD("\"stream\":\"yes\"", TYPE, "stream"),
    O_BAD("\"format\":\"xml\"", RANGE, "format"),
    O_BAD("\"format\":5", TYPE, "format"),
    O_BAD("\"think\":\"huge\"", RANGE, "think"),
    O_BAD("\"think\":5", TYPE, "think"),
    O_BAD("\"keep_alive\":\"soon\"", RANGE, "keep_alive"),
    O_BAD("\"keep_alive\":\"\"", RANGE, "keep_alive"),
    O_BAD("\"keep_alive\":\"5x\"", RANGE, "keep_alive"),
    O_BAD("\"keep_alive\":\"5m3\"", RANGE, "keep_alive"),
    O_BAD("\"keep_alive\":true", TYPE, "keep_alive"),
    O_BAD("\"top_logprobs\":3", NOT, "top_logprobs"),
    O_BAD("\"options\":[]", TYPE, "options"),
    O_BAD("\"options\":{\"temperature\":\"x\"}", TYPE, "options.temperature"),
    O_BAD("\"options\":{\"num_ctx\":-1}", RANGE, "options.num_ctx"),
    O_BAD("\"options\":{\"mirostat\":1}", NOT, "options.mirostat"),
    O_BAD("\"options\":{\"n\":2}", NOT, "options.n"),
    O_BAD("\"options\":{\"n_cmpl\":2}", NOT, "options.n_cmpl"),
    BODY_BAD("/api/generate", "{\"prompt\":\"a\",\"suffix\":\"b\",\"context\":[1]}", NOT, "context"),
    O_BAD("\"options\":{\"seed\":1.5}", TYPE, "options.seed"),
    O_BAD("\"tools\":[{\"type\":\"x\"}]", NOT, "tools[0].type"),
    O_BAD("\"tools\":[{}]", MISSING, "tools[0].function"),
    BODY_BAD("/api/generate", "{\"prompt\":5}", TYPE, "prompt"),
    BODY_BAD("/api/generate", "{\"prompt\":\"a\",\"system\":5}", TYPE, "system"),
    BODY_BAD("/api/generate", "{\"prompt\":\"a\",\"template\":\"x\"}", NOT, "template"),
    BODY_BAD("/api/generate", "{\"prompt\":\"a\",\"images\":[\"x\"]}", NOT, "images"),
    BODY_BAD("/api/generate", "{\"prompt\":\"a\",\"raw\":1}", TYPE, "raw"),
    BODY_BAD("/api/generate", "{\"prompt\":\"a\",\"context\":\"x\"}", TYPE, "context"),
    BODY_BAD("/api/generate", "{\"prompt\":\"a\",\"context\":[1,1000]}", RANGE, "context[1]"),
    BODY_BAD("/api/embed", "{\"input\":5}", TYPE, "input"),
    BODY_BAD("/api/embeddings", "{\"prompt\":5}", TYPE, "prompt"),
    BODY_BAD("/api/embeddings", "{\"prompt\":[\"a\",\"b\"]}", TYPE, "prompt"),
    BODY_BAD("/api/embeddings", "{\"prompt\":[]}", TYPE, "prompt"),
    BODY_BAD("/api/embed", "{\"input\":[\"a\",{}]}", TYPE, "input[1]"),
    BODY_BAD("/api/embed", "{\"input\":\"a\",\"truncate\":1}", TYPE, "truncate"),
    BODY_BAD("/api/embed", "{\"input\":\"a\",\"dimensions\":-1}", RANGE, "dimensions"),

    /* embeddings and rerank */
    BODY_BAD("/v1/embeddings", "{}", MISSING, "input"),
    BODY_BAD("/v1/embeddings", "{\"content\":\"x\"}", MISSING, "input"),
    BODY_BAD("/v1/embeddings", "{\"input\":[]}", RANGE, "input"),
    BODY_BAD("/v1/embeddings", "{\"input\":{}}", TYPE, "input"),
    BODY_BAD("/v1/embeddings", "{\"input\":[[1],[1000]]}", RANGE, "input[1][0]"),
    BODY_BAD("/v1/embeddings", "{\"input\":{\"content\":\"x\"}}", TYPE, "input.content"),
    BODY_BAD("/v1/embeddings", "{\"input\":{\"content\":[{\"type\":\"unknown\"}]}}", NOT, "input.content[0].type"),
    BODY_BAD("/v1/embeddings", "{\"input\":[{\"content\":[{\"type\":\"image_url\"}]}]}", NOT,
             "input[0].content[0].type"),
    BODY_BAD("/v1/embeddings", "{\"input\":{\"content\":[{\"type\":\"text\"}]}}", MISSING, "input.content[0].text"),
    BODY_BAD("/v1/embeddings", "{\"input\":{\"content\":[],\"prompt_string\":\"x\"}}", TYPE, "input"),
    BODY_BAD("/completion", "{\"prompt\":{\"prompt_string\":5}}", TYPE, "prompt.prompt_string"),
    BODY_BAD("/completion", "{\"prompt\":[\"a\",{\"prompt_string\":\"x\",\"multimodal_data\":[\"AA\"]}]}", NOT,
             "prompt[1].multimodal_data"),
    BODY_BAD("/v1/embeddings", "{\"input\":\"a\",\"encoding_format\":\"hex\"}", RANGE, "encoding_format"),
    BODY_BAD("/v1/embeddings", "{\"input\":\"a\",\"dimensions\":0}", RANGE, "dimensions"),
    BODY_BAD("/v1/embeddings", "{\"input\":\"a\",\"stream\":true}", NOT, "stream"),
    BODY_BAD("/v1/rerank", "{\"documents\":[\"x\"]}", MISSING, "query"),
    BODY_BAD("/v1/rerank", "{\"query\":\"q\"}", MISSING, "documents"),
    BODY_BAD("/v1/rerank", "{\"query\":5,\"documents\":[\"x\"]}", TYPE, "query"),
    BODY_BAD("/v1/rerank", "{\"query\":\"q\",\"documents\":\"x\"}", TYPE, "documents"),
    BODY_BAD("/v1/rerank", "{\"query\":\"q\",\"documents\":[]}", RANGE, "documents"),
    BODY_BAD("/v1/rerank", "{\"query\":\"q\",\"documents\":[5]}", TYPE, "documents[0]"),
    BODY_BAD("/v1/rerank", "{\"query\":\"q\",\"documents\":[{}]}", MISSING, "documents[0].text"),
    BODY_BAD("/v1/rerank", "{\"query\":\"q\",\"documents\":[\"x\"],\"top_n\":0}", RANGE, "top_n"),
    BODY_BAD("/v1/rerank", "{\"query\":\"q\",\"texts\":[]}", RANGE, "texts"),
    BODY_BAD("/v1/rerank", "{\"query\":\"q\",\"texts\":[\"x\",5]}", TYPE, "texts[1]"),
    BODY_BAD("/v1/rerank", "{\"query\":\"q\",\"texts\":[\"x\"],\"documents\":[\"x\"]}", NOT, "texts"),
};

/* ---- what is taken ----------------------------------------------------------------------- */

typedef struct chat_case {
    const char *path, *body, *messages, *tools;
    bool continued;
} chat_case;

#define CALLS_IN                                                                                                      \
    "\"tool_calls\":[{\"id\":\"c1\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"a\\\":1}" \
    "\"}}]"

static const chat_case chat_cases[] = {
    { C_PATH, /* an answer that has not begun is a new one */
      "{\"messages\":[" U ",{\"role\":\"assistant\",\"content\":\"\"}]}", "[" U "]", NULL, false },
    { C_PATH, "{\"messages\":[" U ",{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"\"}]}]}",
      "[" U "]", NULL, false },
    { C_PATH, "{\"messages\":[{\"role\":\"developer\",\"content\":\"s\"}," U "]}",
      "[{\"role\":\"developer\",\"content\":\"s\"}," U "]", NULL, false },
    { C_PATH,
      "{\"messages\":[{\"role\":\"user\",\"name\":\"bob\",\"content\":[{\"type\":\"text\",\"text\":\"a\\u0000\"}]}]}",
      "[{\"role\":\"user\",\"name\":\"bob\",\"content\":\"a\\u0000\"}]", NULL, false },
    { C_PATH,
      "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":"
      "\"b\"}]}]}",
      "[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"}]}]", NULL,
      false },
    { C_PATH, "{\"messages\":[{\"role\":\"user\",\"content\":[]}]}", "[{\"role\":\"user\",\"content\":\"\"}]", NULL,
      false },
    { C_PATH,
      "{\"messages\":[" U ",{\"role\":\"assistant\",\"content\":null," CALLS_IN
      "},{\"role\":\"tool\",\"tool_call_id\":\"c1\","
      "\"content\":\"r\"}],\"tools\":[{\"type\":\"function\",\"function\":{\"parameters\":{\"type\":\"object\","
      "\"properties\":{"
      "\"z\":{},\"a\":{}}},\"name\":\"f\",\"description\":\"d\",\"strict\":false}}]}",
      "[" U ",{\"role\":\"assistant\",\"content\":null," CALLS_IN "},{\"role\":\"tool\",\"tool_call_id\":\"c1\","
      "\"content\":\"r\"}]",
      "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"description\":\"d\",\"parameters\":{\"type\":\"object\","
      "\"properties\":{\"z\":{},\"a\":{}}},\"strict\":false}}]",
      false },
    { C_PATH,
      "{\"messages\":[" U
      ",{\"role\":\"assistant\",\"content\":\"x\",\"reasoning\":\"why\",\"tool_calls\":[{\"id\":\"c1\","
      "\"function\":{\"name\":\"f\",\"arguments\":{\"a\":1}}}]}," U "]}",
      "[" U ",{\"role\":\"assistant\",\"content\":\"x\",\"reasoning_content\":\"why\"," CALLS_IN "}," U "]", NULL,
      false },
    { C_PATH, /* a call that was cut before its arguments */
      "{\"messages\":[" U ",{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"c1\",\"function\":{\"name\":\"f\","
      "\"arguments\":\"\"}}]}," U "]}",
      "[" U ",{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"c1\",\"type\":\"function\","
      "\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}," U "]",
      NULL, false },
    { C_PATH, "{\"messages\":[" U ",{\"role\":\"assistant\",\"content\":\"So\"}]}",
      "[" U ",{\"role\":\"assistant\",\"content\":\"So\"}]", NULL, true },
    { C_PATH,
      "{\"messages\":[" U ",{\"role\":\"assistant\",\"content\":\"So\"}],\"continue_final_message\":true,"
      "\"add_generation_prompt\":false}",
      "[" U ",{\"role\":\"assistant\",\"content\":\"So\"}]", NULL, true },
    { C_PATH, "{\"messages\":[" U ",{\"role\":\"assistant\",\"content\":\"So\"}],\"add_generation_prompt\":true}",
      "[" U ",{\"role\":\"assistant\",\"content\":\"So\"}]", NULL, false },
    { C_PATH, "{\"messages\":[" U ",{\"role\":\"assistant\",\"content\":null,\"refusal\":\"no\"}," U "]}",
      "[" U ",{\"role\":\"assistant\",\"content\":\"no\"}," U "]", NULL, false },
    { C_PATH, "{\"messages\":[" U "],\"tools\":[]}", "[" U "]", NULL, false },
    { "/apply-template", "{\"messages\":[" U "]}", "[" U "]", NULL, false },
    { C_PATH "/input_tokens", "{\"messages\":[" U "],\"stream\":true}", "[" U "]", NULL, false },

    /* Anthropic: system first, results before the words, turns of one role joined, thoughts and calls */
    { M_PATH,
      "{\"max_tokens\":9,\"system\":[{\"type\":\"text\",\"text\":\"s\",\"cache_control\":{\"type\":\"ephemeral\"}}],"
      "\"messages\":[" U ",{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"there\"}]}]}",
      "[{\"role\":\"system\",\"content\":\"s\"},{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"hi\"},{"
      "\"type\":\"text\",\"text\":\"there\"}]}]",
      NULL, false },
    { M_PATH,
      "{\"max_tokens\":9,\"messages\":[" U ",{\"role\":\"assistant\",\"content\":[{\"type\":\"thinking\",\"thinking\":"
      "\"hm\",\"signature\":\"\"},{\"type\":\"redacted_thinking\",\"data\":\"x\"},{\"type\":\"text\",\"text\":\"ok\"},{"
      "\"type\":\"tool_use\",\"id\":\"c1\",\"name\":\"f\",\"input\":{\"a\":1}}]},{\"role\":\"user\",\"content\":[{"
      "\"type\":\"text\",\"text\":\"and?\"},{\"type\":\"tool_result\",\"tool_use_id\":\"c1\",\"content\":[{\"type\":"
      "\"text\",\"text\":\"r\"}],\"is_error\":false}]}],\"tools\":[{\"name\":\"f\",\"input_schema\":{\"type\":"
      "\"object\"},"
      "\"description\":\"d\",\"cache_control\":null}]}",
      "[" U ",{\"role\":\"assistant\",\"content\":\"ok\",\"reasoning_content\":\"hm\"," CALLS_IN "},{\"role\":\"tool\","
      "\"tool_call_id\":\"c1\",\"content\":\"r\"},{\"role\":\"user\",\"content\":\"and?\"}]",
      "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"description\":\"d\",\"parameters\":{\"type\":\"object\"}}"
      "}]",
      false },
    /* ids of calls are the model's again, pieces of reasoning apart */
    { M_PATH,
      "{\"max_tokens\":9,\"messages\":[" U ",{\"role\":\"assistant\",\"content\":[{\"type\":\"thinking\",\"thinking\":"
      "\"h\",\"signature\":\"\"},{\"type\":\"thinking\",\"thinking\":\"m\",\"signature\":\"\"},{\"type\":\"tool_use\","
      "\"id\":\"toolu_c1\",\"name\":\"f\",\"input\":{\"a\":1}}]},{\"role\":\"user\",\"content\":[{\"type\":"
      "\"tool_result\",\"tool_use_id\":\"toolu_c1\",\"content\":\"r\"}]},{\"role\":\"assistant\",\"content\":[{"
      "\"type\":"
      "\"tool_use\",\"id\":\"toolu_ABCDEFGHIJKLMNOPQRSTUVWX\",\"name\":\"f\"}]},{\"role\":\"user\",\"content\":[{"
      "\"type\":\"tool_result\",\"tool_use_id\":\"toolu_ABCDEFGHIJKLMNOPQRSTUVWX\",\"content\":\"s\"}]}]}",
      "[" U ",{\"role\":\"assistant\",\"content\":null,\"reasoning_content\":\"h\\n\\nm\"," CALLS_IN "},{\"role\":"
      "\"tool\",\"tool_call_id\":\"c1\",\"content\":\"r\"},{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{"
      "\"id\":\"call_ABCDEFGHIJKLMNOPQRSTUVWX\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{}"
      "\"}"
      "}]},{\"role\":\"tool\",\"tool_call_id\":\"call_ABCDEFGHIJKLMNOPQRSTUVWX\",\"content\":\"s\"}]",
      NULL, false },
    { M_PATH, /* the model's own id, as long as those that are made here */
      "{\"max_tokens\":9,\"messages\":[" U ",{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":"
      "\"toolu_functions.get_weather:12\",\"name\":\"f\"}]},{\"role\":\"user\",\"content\":[{\"type\":"
      "\"tool_result\",\"tool_use_id\":\"toolu_functions.get_weather:12\",\"content\":\"s\"}]}]}",
      "[" U ",{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"functions.get_weather:12\",\"type\":"
      "\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]},{\"role\":\"tool\",\"tool_call_id\":"
      "\"functions.get_weather:12\",\"content\":\"s\"}]",
      NULL, false },
    /* what the system says between turns stands where it was said */
    { M_PATH,
      "{\"max_tokens\":9,\"system\":\"s\",\"messages\":[" U ",{\"role\":\"system\",\"content\":\"hook\"},{\"role\":"
      "\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"c1\",\"name\":\"f\",\"input\":{\"a\":1}}]},{"
      "\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"c1\",\"content\":\"r\"}]},{"
      "\"role\":\"system\",\"content\":[{\"type\":\"text\",\"text\":\"be\",\"cache_control\":{\"type\":"
      "\"ephemeral\"}},{\"type\":\"text\",\"text\":\"brief\"}]}]}",
      "[{\"role\":\"system\",\"content\":\"s\"}," U ",{\"role\":\"system\",\"content\":\"hook\"},{\"role\":"
      "\"assistant\",\"content\":null," CALLS_IN "},{\"role\":\"tool\",\"tool_call_id\":\"c1\",\"content\":\"r\"},{"
      "\"role\":\"system\",\"content\":[{\"type\":\"text\",\"text\":\"be\"},{\"type\":\"text\",\"text\":\"brief\"}"
      "]}]",
      NULL, false },
    { M_PATH,
      "{\"max_tokens\":9,\"system\":\"x-anthropic-billing-header: cc_version=2; cch=a1B2c; more "
      "cch=zzzzz;\",\"messages\":[" U "]}",
      "[{\"role\":\"system\",\"content\":\"x-anthropic-billing-header: cc_version=2; cch=fffff; more cch=zzzzz;\"}," U
      "]",
      NULL, false },
    { M_PATH,
      "{\"max_tokens\":9,\"system\":[{\"type\":\"text\",\"text\":\"x-anthropic-billing-header: cch=a1B2c;\"},{\"type\":"
      "\"text\",\"text\":\"cch=a1B2c;\"}],\"messages\":[" U "]}",
      "[{\"role\":\"system\",\"content\":[{\"type\":\"text\",\"text\":\"x-anthropic-billing-header: "
      "cch=fffff;\"},{\"type\":"
      "\"text\",\"text\":\"cch=a1B2c;\"}]}," U "]",
      NULL, false },
    { M_PATH, "{\"max_tokens\":9,\"messages\":[" U ",{\"role\":\"assistant\",\"content\":\"So\"}]}",
      "[" U ",{\"role\":\"assistant\",\"content\":\"So\"}]", NULL, true },
    { M_PATH "/count_tokens", "{\"messages\":[" U "]}", "[" U "]", NULL, false },

    /* responses: adjacent parts of an answer are one turn */
    { R_PATH, "{\"input\":\"hi\",\"instructions\":\"be\"}", "[{\"role\":\"system\",\"content\":\"be\"}," U "]", NULL,
      false },
    { R_PATH,
      "{\"input\":[{\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"hi\"}]},{\"type\":\"reasoning\","
      "\"id\":\"rs_1\",\"summary\":[],\"content\":[{\"type\":\"reasoning_text\",\"text\":\"h\"},{\"type\":"
      "\"reasoning_text\",\"text\":\"m\"}]},{\"type\":\"message\",\"role\":\"assistant\",\"status\":\"completed\","
      "\"content\":[{\"type\":\"output_text\",\"text\":\"ok\",\"annotations\":[]}]},{\"type\":\"function_call\","
      "\"call_id\":\"c1\",\"name\":\"f\",\"arguments\":\"{\\\"a\\\":1}\"},{\"type\":\"function_call_output\",\"call_"
      "id\":"
      "\"c1\",\"output\":\"r\"}],\"tools\":[{\"type\":\"function\",\"name\":\"f\",\"parameters\":{}},{\"type\":"
      "\"web_search\"}],\"tool_choice\":{\"type\":\"function\",\"name\":\"f\"}}",
      "[" U ",{\"role\":\"assistant\",\"content\":\"ok\",\"reasoning_content\":\"h\\n\\nm\"," CALLS_IN
      "},{\"role\":\"tool\","
      "\"tool_call_id\":\"c1\",\"content\":\"r\"}]",
      "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{}}}]", false },
    { R_PATH,
      "{\"input\":[{\"role\":\"user\",\"content\":\"hi\"},{\"type\":\"reasoning\",\"summary\":[],\"encrypted_content\":"
      "\"x\"},{\"role\":\"user\",\"content\":\"so?\"},{\"type\":\"reasoning\",\"summary\":[{\"type\":\"summary_text\","
      "\"text\":\"S\"}]},{\"role\":\"assistant\",\"content\":\"ok\"}]}",
      "[" U ",{\"role\":\"user\",\"content\":\"so?\"},{\"role\":\"assistant\",\"content\":\"ok\",\"reasoning_content\":"
      "\"S\"}]",
      NULL, true },
    { R_PATH "/input_tokens", "{\"input\":\"hi\"}", "[" U "]", NULL, false },

    /* ollama: calls have no ids, results name their tool */
    { O_PATH,
      "{\"messages\":[" U
      ",{\"role\":\"assistant\",\"content\":\"\",\"thinking\":\"hm\",\"tool_calls\":[{\"function\":{"
      "\"name\":\"f\",\"arguments\":{\"a\":1}}},{\"function\":{\"name\":\"g\",\"arguments\":{}}}]},{\"role\":\"tool\","
      "\"tool_name\":\"g\",\"content\":\"G\"},{\"role\":\"tool\",\"content\":\"F\"}]}",
      "[" U ",{\"role\":\"assistant\",\"content\":null,\"reasoning_content\":\"hm\",\"tool_calls\":[{\"id\":\"call_0\","
      "\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"a\\\":1}\"}},{\"id\":\"call_1\","
      "\"type\":"
      "\"function\",\"function\":{\"name\":\"g\",\"arguments\":\"{}\"}}]},{\"role\":\"tool\",\"name\":\"g\","
      "\"tool_call_id\":\"call_1\",\"content\":\"G\"},{\"role\":\"tool\",\"tool_call_id\":\"call_0\",\"content\":\"F\"}"
      "]",
      NULL, false },
    { "/api/generate", "{\"prompt\":\"hi\",\"system\":\"s\"}", "[{\"role\":\"system\",\"content\":\"s\"}," U "]", NULL,
      false },
};

#endif
