#!/usr/bin/env python3
"""Renders the chat templates of the tests with the `transformers` package.

The templates are our own and small; each uses constructs that models' templates
use. What they must come to is in a file beside the tests, and this script says
whether transformers still agrees, or writes the file anew.

    pip install transformers jinja2
    python bench/chat_templates.py [--write]
"""

import json
import pathlib
import sys

TARGET = pathlib.Path(__file__).parent.parent / (
    "runtime/src/generate/chat/testdata/templates.json"
)

USER = {"role": "user", "content": "  What's \"this\"?\n"}
SYSTEM = {"role": "system", "content": "Be brief. "}
ASSISTANT = {"role": "assistant", "content": "<think>\nhm\n</think>\n\nIt <is> \u00e9."}
TALK = [SYSTEM, USER, ASSISTANT, {"role": "user", "content": "Go on"}]
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "look_up",
            "description": "Finds \u00e9 <b> & 'c'",
            "parameters": {
                "type": "object",
                "properties": {
                    "key": {"type": "string", "enum": ["a", "b"]},
                    "n": {"type": "integer", "minimum": 1, "maximum": 2.5},
                },
                "required": ["key"],
                "more": [],
                "none": {},
            },
        },
    }
]

CASES = [
    ("turns as headers", """\
{{- bos_token }}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
<|head|>system<|/head|>

{{ system_message }}
{%- for message in messages %}
    {%- if not (message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|head|>' + message['role'] + '<|/head|>\\n\\n'+ message['content'] | trim + '<|eot|>' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|head|>assistant<|/head|>\\n\\n' }}
{%- endif %}
""", TALK, {}),
    ("roles that must alternate", """\
{%- if messages[0]["role"] == "system" -%}
    {%- set system_message = messages[0]["content"] -%}
    {%- set loop_messages = messages[1:] -%}
{%- else -%}
    {%- set loop_messages = messages -%}
{%- endif -%}
{%- set ns = namespace(index=0, found=false) -%}
{%- for message in loop_messages -%}
    {%- if (message["role"] == "user") != (loop.index0 % 2 == 0) -%}
        {{- raise_exception("roles must alternate user/assistant/user/...") -}}
    {%- endif -%}
    {%- set ns.index = ns.index + 1 -%}
{%- endfor -%}
{{- bos_token -}}
{%- for message in loop_messages -%}
    {%- if message["role"] == "user" -%}
        {%- if loop.last and system_message is defined -%}
            {{- "[INST] " + system_message + "\\n\\n" + message["content"] + "[/INST]" -}}
        {%- else -%}
            {{- "[INST] " ~ message["content"] ~ "[/INST]" -}}
        {%- endif -%}
    {%- elif message["role"] == "assistant" -%}
        {{- " " + message["content"] + eos_token -}}
    {%- endif -%}
{%- endfor -%}
{{ ns.index }}{{ ns.found }}""", TALK, {}),
    ("roles that do not alternate", """\
{%- for message in messages -%}
    {%- if (message.role == 'user') != (loop.index0 % 2 == 0) -%}
        {{- raise_exception("Roles must alternate, not " + message.role) -}}
    {%- endif -%}
{%- endfor -%}""", [USER, USER], {}),
    ("the model's role and a folded system message", """\
{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {%- if messages[0]['content'] is string -%}
        {%- set first_user_prefix = messages[0]['content'] + '\\n\\n' -%}
    {%- else -%}
        {%- set first_user_prefix = messages[0]['content'][0]['text'] + '\\n\\n' -%}
    {%- endif -%}
    {%- set loop_messages = messages[1:] -%}
{%- else -%}
    {%- set first_user_prefix = "" -%}
    {%- set loop_messages = messages -%}
{%- endif -%}
{%- for message in loop_messages -%}
    {%- if (message['role'] == 'assistant') -%}
        {%- set role = "model" -%}
    {%- else -%}
        {%- set role = message['role'] -%}
    {%- endif -%}
    {{ '<turn>' + role + '\\n' + (first_user_prefix if loop.first else "") }}
    {%- if message['content'] is string -%}
        {{ message['content'] | trim }}
    {%- elif message['content'] is iterable -%}
        {%- for item in message['content'] -%}
            {{ item['text'] | trim }}
        {%- endfor -%}
    {%- endif -%}
    {{ '</turn>\\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{'<turn>model\\n'}}
{%- endif -%}
""", TALK, {}),
    ("tools and thinking", """\
{%- if tools %}
    {{- '<|s|>system\\n' }}
    {%- for tool in tools %}
        {{- "\\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "\\n<|e|>\\n" }}
{%- endif %}
{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step_tool and message.role == "user" and not(message.content.startswith('<tool>') and message.content.endswith('</tool>')) %}
        {%- set ns.multi_step_tool = false %}
        {%- set ns.last_query_index = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.role == "assistant" %}
        {%- set content = message.content %}
        {%- set reasoning_content = '' %}
        {%- if message.reasoning_content is defined and message.reasoning_content is not none %}
            {%- set reasoning_content = message.reasoning_content %}
        {%- elif '</think>' in message.content %}
            {%- set content = message.content.split('</think>')[-1].lstrip('\\n') %}
            {%- set reasoning_content = message.content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
        {%- endif %}
        {{- '<|s|>' + message.role + '\\n' + reasoning_content.strip('\\n') + '|' + content }}
    {%- else %}
        {{- '<|s|>' + message.role + '\\n' + message.content + '<|e|>' + '\\n' }}
    {%- endif %}
{%- endfor %}
{{- ns.last_query_index }}
{%- if add_generation_prompt %}
    {{- '<|s|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}""", TALK, {"tools": TOOLS, "enable_thinking": False}),
    ("white space", """\
{% for message in messages %}
  {% if message.role == 'user' %}
  U {{ message.content }}
  {% elif true %}
    {{+ message.role -}}   x
  {%- else %}
  {% endif %}
{#- a comment -#}
 {% endfor %}

end {%+ if true %} kept {% endif %}
""", TALK, {}),
    ("JSON in all forms", """\
{{ tools | tojson }}
{{ tools | tojson(indent=2) }}
{{ tools | tojson(ensure_ascii=true) }}
{{ tools | tojson(sort_keys=true, separators=(',', ':')) }}
{{ [] | tojson(indent=4) }}{{ {} | tojson }}{{ [[], {}] | tojson(indent=1) }}
{{ 'a\\u2028<>&"\\\\' | tojson }}{{ none | tojson }}{{ 1.5 | tojson }}{{ true | tojson }}""",
     [], {"tools": TOOLS}),
    ("what is printed", """\
{{ true }} {{ false }} {{ none }} {{ 1 }} {{ 2.5 }} {{ 4 / 2 }} {{ 7 // 2 }} {{ 7 % 3 }} {{ missing }}
{{ ['a', 1, none, "it's"] }} {{ {'a': [true, 1.5]} }} {{ messages[0] }}
{{ "x" if missing else "y" }} {{ missing is defined }} {{ none is none }} {{ 'b' in 'abc' }} {{ 'k' in {'k': 1} }} {{ 2 in [1, 2] }} {{ 'x' not in 'abc' }}""",
     [USER], {}),
    ("methods of texts", """\
{{ ' a '.strip() }}|{{ 'xxaxx'.strip('x') }}|{{ ' a'.lstrip() }}|{{ 'a '.rstrip() }}|{{ 'aBc'.upper() }}|{{ 'aBc'.lower() }}|{{ 'a b'.title() }}|{{ 'ab'.capitalize() }}
{{ 'a,b,c'.split(',') }}|{{ 'a,b,c'.split(',', 1)[1] }}|{{ ' a  b '.split() }}|{{ 'abc'.startswith('ab') }}|{{ 'abc'.endswith(('x', 'c')) }}|{{ 'aXbX'.replace('X', '-') }}|{{ 'abcb'.find('b') }}|{{ ','.join(['a', 'b']) }}|{{ 'abcb'.count('b') }}
{{ 'abcdef'[1:3] }}|{{ 'abcdef'[-2:] }}|{{ 'abcdef'[::-1] }}|{{ 'abc'[0] }}|{{ messages[-1].role }}|{{ 'a\\nb'.splitlines() }}""",
     TALK, {}),
    ("filters and tests", """\
{{ messages | map(attribute='role') | join(', ') }}|{{ messages | selectattr('role', 'equalto', 'user') | list | length }}|{{ messages | rejectattr('role', 'equalto', 'user') | map(attribute='role') | list }}
{{ [3, 1, 2] | sort | first }}|{{ [1, 2] | last }}|{{ missing | default('d') }}|{{ '' | default('d', true) }}|{{ 'abc' | length }}|{{ 'a b' | upper }}|{{ 'x' | string }}|{{ '3' | int + 1 }}|{{ [1, 2, 2] | unique | list }}|{{ 'a' | replace('a', 'b') }}
{{ 'l1\\nl2\\n\\nl3' | indent }}|{{ 'l1\\nl2' | indent(2, true) }}|{% for k, v in {'b': 1, 'a': 2} | dictsort %}{{ k }}{{ v }}{% endfor %}|{% for k, v in {'b': 1} | items %}{{ k }}{{ v }}{% endfor %}|{{ [1, 2, 3, 4] | batch(2) | list }}
{{ 1 is number }}|{{ 's' is string }}|{{ [] is iterable }}|{{ {} is mapping }}|{{ [] is sequence }}|{{ true is boolean }}|{{ 3 is odd }}|{{ 1 is integer }}|{{ 1.5 is float }}""",
     TALK, {}),
    ("macros and loops", """\
{%- macro show(value, depth=0) -%}
    {%- if value is mapping -%}
        {%- for key, item in value.items() -%}
            {{ '\\n' }}{{ '  ' * depth }}{{ key }}:{{ show(item, depth + 1) }}
        {%- endfor -%}
    {%- elif value is string -%}
        {{ ' ' ~ value }}
    {%- else -%}
        {{ ' ' }}{{ value | tojson }}
    {%- endif -%}
{%- endmacro -%}
{{ show(tools[0]) }}
{%- for i in range(3) %} {{ loop.index }}/{{ loop.length }}{% if loop.first %}F{% endif %}{% if loop.last %}L{% endif %}{{ loop.cycle('a', 'b') }}{{ loop.previtem }}{{ loop.nextitem }}{% endfor %}
{%- for x in [1, 2, 3, 4] if x is even %} {{ x }}{% else %} none{% endfor %}
{%- for x in [] %}{% else %} empty{% endfor %}
{%- for x in [1, 2, 3] %}{% if x == 2 %}{% continue %}{% endif %}{{ x }}{% if x == 3 %}{% break %}{% endif %}{% endfor %}
{%- set a, b = 1, 2 %} {{ a + b }}{% set block %} captured {% endset %}{{ block | trim }}
{%- for key in {'k1': 1, 'k2': 2} %} {{ key }}{% endfor %}{{ {'a': 1}.get('b', 'no') }}{{ {'a': 1}['a'] }}{{ dict(x=1).x }}""",
     [], {"tools": TOOLS}),
    ("what the model says", """\
{%- for message in messages %}{% if message.role == 'assistant' %}{% generation %}{{ message.content }}{% endgeneration %}{% else %}{{ message.role }}{% endif %}
{% endfor %}""", TALK, {}),
    ("the year", "{{ strftime_now('%Y')[:2] }}{{ strftime_now('%%') }}", [], {}),
]


def main():
    from transformers.utils.chat_template_utils import render_jinja_template

    cases = []
    for name, template, messages, variables in CASES:
        tools = variables.get("tools")
        more = {k: v for k, v in variables.items() if k != "tools"}
        case = {
            "name": name, "template": template, "messages": messages,
            "variables": variables,
        }
        try:
            rendered, _ = render_jinja_template(
                conversations=[messages], chat_template=template,
                tools=tools, add_generation_prompt=True,
                bos_token="<s>", eos_token="</s>", **more,
            )
            case["expected"] = rendered[0]
        except Exception as error:
            case["refused"] = str(error)
        cases.append(case)
    text = json.dumps(cases, indent=1, ensure_ascii=False) + "\n"
    if "--write" in sys.argv:
        TARGET.write_text(text)
        return 0
    is_equal = TARGET.read_text() == text
    print(f"{len(cases)} templates:", "equal" if is_equal else "not equal")
    return 0 if is_equal else 1


if __name__ == "__main__":
    sys.exit(main())
