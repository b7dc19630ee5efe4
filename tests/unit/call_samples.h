/* call_samples: a chat template for each shape in which calls of tools are written (text/calls.h), made by hand. Owns
 * the templates and what is known of each; refuses to know what is done with them. */
#ifndef HN_CALL_SAMPLES_H
#define HN_CALL_SAMPLES_H

#include "text/calls.h"

#define BEGIN "{% for m in messages %}{% if m.role == 'user' %}<|user|>{{ m.content }}{% elif m.role == 'tool' %}"
#define ANSWER "<|tool|>{{ m.content }}{% else %}<|assistant|>{{ m.content or '' }}{% if m.tool_calls %}"
#define EACH "{% for c in m.tool_calls %}{% set f = c.function %}"
#define END                                                                                                            \
    "{% endif %}<|end|>{% endif %}{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}{% if tools %}{% " \
    "endif %}"
#define SEP(s) "{{ '' if loop.first else '" s "' }}"
#define ARGS "{% for k, v in f.arguments.items() %}"
#define RAW "{{ v if v is string else v | tojson }}"

typedef struct sample {
    const char *name, *source;
    hn_call_shape shape;
    bool one, ids;         /* one call at most; the template writes ids */
    const char *marks[10]; /* that are tokens of some vocabularies */
} sample;

static const sample samples[] = {
    { "json in tags",
      BEGIN ANSWER EACH SEP(
          "\\n") "<tool_call>\n{\"name\": {{ f.name | tojson }}, \"arguments\": {{ f.arguments | tojson }}}"
                 "\n</tool_call>{% endfor %}" END,
      HN_CALLS_JSON,
      false,
      false,
      { "<tool_call>", "</tool_call>" } },
    { "json array with ids",
      BEGIN ANSWER
      "[TOOL_CALLS][" EACH SEP(", ") "{\"name\": {{ f.name | tojson }}, \"arguments\": {{ f.arguments | tojson "
                                     "}}, \"id\": {{ c.id | tojson }}}{% endfor %}]" END,
      HN_CALLS_JSON,
      false,
      true,
      { "[TOOL_CALLS]" } },
    { "id first",
      BEGIN ANSWER "<|START_ACTION|>[\n" EACH SEP(",\\n") "    {\"tool_call_id\": {{ c.id | tojson }}, \"tool_name\": "
                                                          "{{ f.name | tojson }}, \"parameters\": {{ "
                                                          "f.arguments | tojson }}}{% endfor %}\n]<|END_ACTION|>" END,
      HN_CALLS_JSON,
      false,
      true,
      { "<|START_ACTION|>", "<|END_ACTION|>" } },
    { "name as key",
      BEGIN ANSWER
      "<|tools_prefix|>[" EACH SEP(", ") "{{ '{' }}{{ f.name | tojson }}: {{ f.arguments | tojson }}{{ '}' }}"
                                         "{% endfor %}]<|tools_suffix|>" END,
      HN_CALLS_JSON,
      false,
      false,
      { "<|tools_prefix|>", "<|tools_suffix|>" } },
    { "bare json",
      BEGIN ANSWER "{% if m.tool_calls | length > 1 %}{{ raise_exception('one') }}{% endif %}" EACH
                   "{\"name\": {{ f.name | tojson }}, \"parameters\": {{ f.arguments | tojson }}}{% endfor %}" END,
      HN_CALLS_JSON,
      true,
      false,
      { NULL } },
    { "name, mark, json",
      BEGIN ANSWER EACH "[TOOL_CALLS]{{ f.name }}[ARGS]{{ f.arguments | tojson }}{% endfor %}" END,
      HN_CALLS_NAMED,
      false,
      false,
      { "[TOOL_CALLS]", "[ARGS]" } },
    { "name, id, json",
      BEGIN ANSWER EACH "[TOOL_CALLS]{{ f.name }}[CALL_ID]{{ c.id }}[ARGS]{{ f.arguments | tojson }}{% endfor %}" END,
      HN_CALLS_NAMED,
      false,
      true,
      { "[TOOL_CALLS]", "[ARGS]", "[CALL_ID]" } },
    { "id, name, json",
      BEGIN ANSWER EACH "<|tc:begin|>{{ c.id }}<|tc:name|>{{ f.name }}<|tc:args|>{{ f.arguments | tojson }}<|tc:end|>"
                        "{% endfor %}" END,
      HN_CALLS_NAMED,
      false,
      true,
      { "<|tc:begin|>", "<|tc:name|>", "<|tc:args|>", "<|tc:end|>" } },
    { "sections",
      BEGIN ANSWER "<|open calls|>" EACH
                   "<|one call|>{{ f.name }}<|sep|>{{ f.arguments | tojson }}<|call end|>{% endfor %}"
                   "<|calls end|>" END,
      HN_CALLS_NAMED,
      false,
      false,
      { "<|open calls|>", "<|one call|>", "<|sep|>", "<|call end|>", "<|calls end|>" } },
    { "fenced json",
      BEGIN ANSWER "<|open calls|>" EACH SEP(
          "\\n") "<|one call|>function<|sep|>{{ f.name }}\n```json\n{{ f.arguments | tojson }}\n```"
                 "<|call end|>{% endfor %}<|calls end|>" END,
      HN_CALLS_NAMED,
      false,
      false,
      { "<|open calls|>", "<|one call|>", "<|sep|>", "<|call end|>", "<|calls end|>" } },
    { "function=name",
      BEGIN ANSWER EACH "<function={{ f.name }}>{{ f.arguments | tojson }}</function>{% endfor %}" END,
      HN_CALLS_NAMED,
      false,
      false,
      { NULL } },
    { "ids that hold the name",
      BEGIN ANSWER "<|section|>" EACH
                   "<|tool_call_begin|>{{ c.id }}<|tool_call_argument_begin|>{{ f.arguments | tojson }}"
                   "<|tool_call_end|>{% endfor %}<|section_end|>" END,
      HN_CALLS_NAMED,
      false,
      false,
      { "<|section|>", "<|tool_call_begin|>", "<|tool_call_argument_begin|>" } },
    { "tagged, lines",
      BEGIN ANSWER EACH SEP("\\n") "<tool_call>\n<function={{ f.name }}>\n" ARGS "<parameter={{ k }}>\n" RAW
                                   "\n</parameter>\n{% endfor %}</function>\n</tool_call>{% endfor %}" END,
      HN_CALLS_TAGGED,
      false,
      false,
      { "<tool_call>", "</tool_call>" } },
    { "tagged, keys and values",
      BEGIN ANSWER EACH "<tool_call>{{ f.name }}" ARGS "<arg_key>{{ k }}</arg_key><arg_value>" RAW
                        "</arg_value>{% endfor %}</tool_call>{% endfor %}" END,
      HN_CALLS_TAGGED,
      false,
      false,
      { "<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>" } },
    { "tagged, attributes",
      BEGIN ANSWER EACH "<function name=\"{{ f.name }}\">" ARGS "<param name=\"{{ k }}\">" RAW
                        "</param>{% endfor %}</function>{% endfor %}" END,
      HN_CALLS_TAGGED,
      false,
      false,
      { NULL } },
    { "tagged, what is markup in CDATA",
      BEGIN ANSWER EACH "<function name=\"{{ f.name }}\">" ARGS
                        "<param name=\"{{ k }}\">{% if v is string and ('<' in v or '\\n' in v) %}<![CDATA[{{ v }}]]>"
                        "{% else %}" RAW "{% endif %}</param>{% endfor %}</function>{% endfor %}" END,
      HN_CALLS_TAGGED,
      false,
      false,
      { NULL } },
    { "tagged, in a section",
      BEGIN ANSWER "<x:tool_call>\n" EACH "<invoke name=\"{{ f.name }}\">\n" ARGS "<parameter name=\"{{ k }}\">" RAW
                   "</parameter>\n{% endfor %}</invoke>\n{% endfor %}</x:tool_call>" END,
      HN_CALLS_TAGGED,
      false,
      false,
      { "<x:tool_call>", "</x:tool_call>" } },
    { "tagged, strings are marked",
      BEGIN ANSWER "<|DSML|calls>\n" EACH "<|DSML|invoke name=\"{{ f.name }}\">\n" ARGS
                   "<|DSML|parameter name=\"{{ k }}\" string=\"{{ 'true' if v is string else 'false' }}\">" RAW
                   "</|DSML|parameter>\n{% endfor %}</|DSML|invoke>\n{% endfor %}</|DSML|calls>" END,
      HN_CALLS_TAGGED,
      false,
      false,
      { NULL } },
    { "every prompt begins a call",
      "{% for m in messages %}{% if m.role == 'user' %}<|user|>{{ m.content }}{% else %}<|assistant|>{% if m.content "
      "%}>>>all\n{{ "
      "m.content }}{% endif %}" EACH ">>>{{ f.name }}\n{{ f.arguments | tojson }}{% endfor %}<|end|>{% endif %}"
      "{% endfor %}{% if add_generation_prompt %}<|assistant|>>>>{% endif %}{% if tools %}{% endif %}",
      HN_CALLS_NAMED,
      false,
      false,
      { NULL } },
    { "lists tools, calls are text",
      "{% if tools %}<|system|>\nList of tools: {{ tools | tojson }}{% endif %}{% for m in messages %}<|{{ m.role }}|>"
      "{{ m.content }}{% if m.role == 'assistant' %}<|end|>{% endif %}{% endfor %}{% if add_generation_prompt %}"
      "<|assistant|>{% endif %}",
      HN_CALLS_PYTHON,
      false,
      false,
      { "<|tool_call_start|>", "<|tool_call_end|>" } },
    { "no calls of its own",
      "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% if m.role == 'assistant' %}<|end|>{% endif %}"
      "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}",
      HN_CALLS_JSON,
      false,
      false,
      { NULL } },
};
enum { N_SAMPLES = sizeof samples / sizeof *samples };

#endif
