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
    CHAT_BAD("\"top_p\":0", RANGE, "top_p"),
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
    CHAT_BAD("\"max_tokens\":-1", RANGE, "max_tokens"),
    CHAT_BAD("\"max_tokens\":1.5", TYPE, "max_tokens"),
    CHAT_BAD("\"max_tokens\":\"5\"", TYPE, "max_tokens"),
    CHAT_BAD("\"max_completion_tokens\":-2", RANGE, "max_completion_tokens"),
    CHAT_BAD("\"max_tokens\":5,\"max_completion_tokens\":6", RANGE, "max_completion_tokens"),
    CHAT_BAD("\"n_predict\":5,\"max_tokens\":6", RANGE, "max_tokens"),
    CHAT_BAD("\"n\":0", RANGE, "n"),
    CHAT_BAD("\"n\":5", RANGE, "n"),
    CHAT_BAD("\"n\":\"2\"", TYPE, "n"),
    CHAT_BAD("\"stop\":5", TYPE, "stop"),
    CHAT_BAD("\"stop\":\"\"", RANGE, "stop"),
    CHAT_BAD("\"stop\":{}", TYPE, "stop"),
    CHAT_BAD("\"stop\":[\"a\",\"\"]", RANGE, "stop[1]"),
    CHAT_BAD("\"stop\":[\"a\",1]", TYPE, "stop[1]"),
    CHAT_BAD("\"stop\":[\"a\\u0000b\"]", TYPE, "stop[0]"),
    CHAT_BAD(
        "\"stop\":[\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\",\"8\",\"9\",\"10\",\"11\",\"12\",\"13\",\"14\",\"15\","
        "\"16\",\"17\"]",
        RANGE, "stop"),
    CHAT_BAD("\"logit_bias\":5", TYPE, "logit_bias"),
    CHAT_BAD("\"logit_bias\":{\"x\":1}", RANGE, "logit_bias.x"),
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
    CHAT_BAD("\"dynatemp_range\":0.5", NOT, "dynatemp_range"),
    CHAT_BAD("\"samplers\":[\"top_k\"]", NOT, "samplers"),

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
    CHAT_BAD("\"guided_json\":{}", NOT, "guided_json"),
    CHAT_BAD("\"guided_regex\":\"a\"", NOT, "guided_regex"),

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
    CHAT_BAD(TOOL("\"name\":\"0123456789012345678901234567890123456789012345678901234567890123x\""), RANGE,
             "tools[0].function.name"),
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
    TEXT_BAD("\"max_tokens\":-1", RANGE, "max_tokens"),
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
};

#endif
