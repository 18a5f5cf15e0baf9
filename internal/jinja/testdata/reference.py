"""Writes reference.json: what Jinja2 itself renders for the templates below.

Run it with Jinja2 installed after adding a template: python3 reference.py > reference.json
"""
import json
import jinja2

VARS = {"groups": 3, "runtime": 240, "iops": 12000, "name": "oltp", "flag": True, "off": False, "ratio": 0.25,
        "negative": -7, "empty": "", "nodes": ":n-1"}

EXPRESSIONS = r"""
7 // 2
-7 // 2
7 // -2
-7 // -2
7.5 // 2
-7.5 // 2
7 % 3
-7 % 3
7 % -3
7.5 % 2
-7.5 % 2
7 % 2.5
2 ** 3
2 ** -1
2 ** 0.5
(-8) ** 3
0 ** 0
2 ** 62
2 ** 3 ** 2
-2 ** 2
4 / 2
7 / 2
1 / 3
3600 / 4
iops ** (1/2)
iops + 1.96 * iops ** (1/2)
iops - 1.96 * iops ** (1/2)
runtime * (groups - 1)
runtime / groups
runtime - (runtime / groups) * 2
1 + 2 * 3 - 4
(1 + 2) * 3
10 - 2 - 3
2 * 3 % 4
1 - -1
+3
- - 3
1.5 + 1
1 + 1.0
0.1 + 0.2
1e3
1e16
1e15
1.5e-5
0.0001
0.00001
123456789.123456789
1e22
12345678901234567.0
5.0
-0.0
100 * 1.1
1_000_000
0x1f
0b101
0o17
'a' + 'b'
'a' ~ 1 ~ 2.0 ~ none ~ true
'a' ~ 1 + 2
'x' * 3
3 * 'x'
'x' * -1
[1] * 2
[1] + [2, 3]
(1, 2) + (3,)
true + 1
true + true
flag * 3
'a' 'b' "c"
"it's"
'say "hi"'
['it\'s']
['a\nb']
'tab\there'
'\u00e9'
'\x41'
'back\\slash'
'\q'
'a' + 1
1 + 'a'
1 / 0
1 // 0
1 % 0
1.0 / 0
[1] + 'a'
none + 1
-'a'
1 < 2
1 < 2 < 3
3 > 2 > 2
1 == 1.0
1 != 1.0
'1' == 1
true == 1
'a' < 'b'
'B' < 'a'
1 < 'a'
none == none
none < 1
[1, 2] == [1, 2]
[1, 2] < [1, 3]
(1, 2) == [1, 2]
{'a': 1} == {'a': 1.0}
1 in [1, 2]
3 in [1, 2]
3 not in [1, 2]
'b' in 'abc'
1 in 'abc'
'a' in {'a': 1}
2 in range(5)
2.0 in range(5)
2.5 in range(5)
5 in range(0, 10, 2)
not true
not 1 == 2
not not 3
true and false or true
1 and 2
0 and 2
0 or 'x'
'' or 'fallback'
none or 0 or []
1 if true else 2
1 if false else 2
(1 if flag else 2) + 1
[1 if off else 3]
'a' if off else 'b' if off else 'c'
'x' if flag
'x' if off
none
None
True
False
[]
()
{}
(1,)
(1)
[1, [2, 'three', 4.0, none, true]]
{'a': 1, 'b': [1, 2]}
{1: 'x', 2.5: none}
[1, 2, 3][0]
[1, 2, 3][-1]
[1, 2, 3][3]
[1, 2, 3]['a']
{'a': 1}['a']
{'a': 1}.a
{'a': {'b': 2}}.a.b
'abc'[1]
'abc'[-1]
'abc'[5]
'abc'[::-1]
'abcdef'[1:4]
'abcdef'[:2]
'abcdef'[-2:]
'abcdef'[::2]
'abcdef'[5:1:-2]
[1, 2, 3, 4][1:]
[1, 2, 3, 4][:-1]
[1, 2, 3, 4][::-1]
[1, 2, 3, 4][10:]
[1, 2][::0]
(1, 2, 3)[1:]
range(3)
range(3)|list
range(1, 10, 3)|list
range(10, 0, -3)|list
range(0)|list
range(5)[2]
range(10)[2:5]|list
range(2.5)
range(1, 2, 0)
range()
range(groups)|list
range(5)|sum
range(5)|length
'abc'|length
'äöü'|length
[1, 2]|count
{'a': 1}|length
5|length
'3.7'|int
'42'|int
' 42 '|int
'x'|int
'x'|int(7)
'x'|int(default=8)
3.9|int
-3.9|int
true|int
none|int
'0x1f'|int(0, 16)
'ff'|int(base=16)
'1e3'|int
'3.5'|float
'x'|float
'x'|float(1.5)
3|float
'1e3'|float
2.5|round
3.5|round
-2.5|round
42.55|round(1)
42.45|round(1)
2.675|round(2)
1234.5|round(-2)
42.55|round(1, 'ceil')
42.55|round(1, 'floor')
42.5|round(method='ceil')
42|round
7|round|int
7.6|round|int
'x'|round
5|string ~ 'x'
1.0|string
[1, 'a']|string
-5|abs
-5.5|abs
5|abs
'Hello World'|upper
'Hello World'|lower
'hello world'|capitalize
'HELLO WORLD'|capitalize
'hello world-wide (web)'|title
'  pad  '|trim
'a-b-c'|replace('-', '+')
'a-b-c'|replace('-', '+', 1)
'abc'|replace('b', '')
5|replace(5, 6)
[3, 1, 2]|sort
[3, 1, 2]|sort(reverse=true)
['b', 'A', 'c']|sort
['b', 'A', 'c']|sort(case_sensitive=true)
['b', 1]|sort
[3, 1, 2]|max
[3, 1, 2]|min
['b', 'C']|max
[]|sum
[1, 2.5]|sum
[1, 2]|sum(start=10)
[{'n': 1}, {'n': 2}]|sum(attribute='n')
[1, 2, 3]|join(',')
[1, 2, 3]|join
'abc'|join('-')
['a', none, true]|join(' ')
[{'n': 'x'}, {'n': 'y'}]|join(',', attribute='n')
[1, 2]|first
[1, 2]|last
'abc'|first
'abc'|last
range(4)|last
[3, 1]|list
'abc'|list
{'b': 1, 'a': 2}|list
{'b': 1, 'a': 2}|items|list
{'b': 1, 'a': 2}|dictsort
{'b': 1, 'a': 2}.items()|list
{'b': 1, 'a': 2}.keys()|list
{'b': 1, 'a': 2}.values()|list
{'b': 1}.get('b')
{'b': 1}.get('x')
{'b': 1}.get('x', 5)
[1, 2, 3]|reverse|list
'abc'|reverse
[1, 1, 2, 1]|unique|list
['a', 'A', 'b']|unique|list
[1, 2, 3, 4, 5]|batch(2)|list
[1, 2, 3]|batch(2, 0)|list
['a', 'b']|map('upper')|list
['1', '2']|map('int')|sum
[{'n': 1}, {'n': 2}]|map(attribute='n')|list
[1, 2, 3, 4]|select('even')|list
[1, 2, 3, 4]|reject('even')|list
[0, 1, '', 'a']|select|list
[1, 2, 3, 4]|select('gt', 2)|list
'%d of %s' | format(3, 'x')
'%05d|%-5s|%5.2f' | format(42, 'ab', 3.14159)
'%x' | format(255)
'%d' | format('x')
'%d' | format(3.9)
'%s %s' | format(1)
'%g' | format(1e10)
'%%' | format()
'%d%%' % 5
'%s-%s' % (1, 2)
[1, 'a', none, true, 1.5]|tojson
{'a': [1]}|tojson
missing|default(4)
missing|default
missing|d('x')
empty|default('x')
empty|default('x', true)
0|default(5, true)
none|default(5)
missing is defined
missing is not defined
name is defined
missing is undefined
none is none
1 is none
1 is number
1.5 is number
'a' is number
1 is integer
1.0 is integer
1.0 is float
'a' is string
[1] is sequence
'a' is sequence
{} is mapping
5 is odd
4 is even
9 is divisibleby 3
9 is divisibleby(2)
9 is not divisibleby 2
3 is eq 3
3 is lt 4
3 is ge 4
3 is in [1, 3]
true is true
1 is true
true is boolean
'abc' is lower
'ABC' is upper
5 is odd and 4 is even
1 is odd or missing is defined
'a,b,c'.split(',')
'a b  c'.split()
'a,b,c'.split(',', 1)
'abc'.upper()
'ABC'.lower()
'abc'.title()
'abc'.startswith('a')
'abc'.endswith('x')
'a-b'.replace('-', '+')
' a '.strip()
'xxaxx'.strip('x')
'xxaxx'.lstrip('x')
'xxaxx'.rstrip('x')
'abcabc'.count('b')
'abc'.find('c')
'abc'.find('x')
','.join(['a', 'b'])
','.join([1])
'7'.zfill(3)
'-7'.zfill(4)
'12'.isdigit()
[1, 2, 1].count(1)
[1, 2, 1].index(2)
dict(a=1)
dict(a=1).a
name
nodes
ratio * 4
negative|abs
-1|abs
1 - 1|abs
name|upper ~ '!'
name ~ '_' ~ groups
groups|string|length
(groups)
groups + (1,)
1, 2
'a' 'b'|upper
2 * 3|string
missing
missing + 1
missing.x
name.nothing
name()
5()
{}.x
[].0
[1].0
1 +
(1
1 2
a b
{'a'}
|upper
1 | nofilter
1 is notest
x = 1
""".strip("\n").split("\n")

TEMPLATES = [
    "plain text",
    "",
    "a\nb\n",
    "a\n\n",
    "{{ 1 }}\n{{ 2 }}\n",
    "{# comment #}x",
    "a {# multi\nline #} b",
    "a {#- trims -#} b",
    "a {{- 1 -}} b",
    "a  \n  {%- if true -%}  \n x  \n {%- endif -%} \n b",
    "{%- if true %} x {% endif -%}\n\n y",
    "{%+ if true %}x{% endif +%}y",
    "{% if flag %}yes{% else %}no{% endif %}",
    "{% if off %}1{% elif flag %}2{% else %}3{% endif %}",
    "{% if off %}1{% elif off %}2{% else %}3{% endif %}",
    "{% if off %}1{% elif off %}2{% endif %}.",
    "{% if flag %}{% if off %}a{% else %}b{% endif %}{% endif %}",
    "{% for i in range(3) %}{{ i }},{% endfor %}",
    "{% for i in range(groups) %}\n - group_{{i}}:\n{% endfor %}\nend",
    "{% for i in range(0) %}x{% else %}none{% endfor %}",
    "{% for i in [] %}x{% endfor %}",
    "{% for i in range(6) if i is odd %}{{ loop.index }}:{{ i }} {% endfor %}",
    "{% for i in range(6) if i > 10 %}{{ i }}{% else %}nothing{% endfor %}",
    "{% for a, b in [(1, 2), (3, 4)] %}{{ a + b }} {% endfor %}",
    "{% for (a, b) in [(1, 2)] %}{{ a + b }} {% endfor %}",
    "{% for a, b in [(1, 2, 3)] %}{{ a }}{% endfor %}",
    "{% for a, b in [1] %}{{ a }}{% endfor %}",
    "{% for k, v in {'x': 1, 'y': 2}.items() %}{{ k }}={{ v }};{% endfor %}",
    "{% for k in {'x': 1, 'y': 2} %}{{ k }}{% endfor %}",
    "{% for c in 'abc' %}{{ c }}.{% endfor %}",
    "{% for i in 1, 2, 3 %}{{ i }}{% endfor %}",
    "{% for i in 5 %}{{ i }}{% endfor %}",
    "{% for i in none %}{{ i }}{% endfor %}",
    "{% for i in missing %}{{ i }}{% endfor %}",
    "{% for i in ['a', 'b', 'c'] %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}"
    "{{ loop.first }}{{ loop.last }}{{ loop.length }} {% endfor %}",
    "{% for i in [1, 2, 3] %}{{ loop.cycle('odd', 'even') }} {% endfor %}",
    "{% for i in [1, 2, 3] %}{{ loop.previtem|default('-') }}{{ loop.nextitem|default('-') }} {% endfor %}",
    "{% for i in [1, 2] %}{% if not loop.last %}{{ i }},{% endif %}{% endfor %}",
    "{% for i in range(2) %}{% for j in range(2) %}{{ i }}{{ j }}{{ loop.index }} {% endfor %}{% endfor %}",
    "{% for i in range(2) %}{{ loop.nothing }}{% endfor %}",
    "{% for i in range(2) %}{% set x = i %}{% endfor %}{{ x is defined }}",
    "{% set x = 1 %}{% for i in range(2) %}{% set x = i %}{% endfor %}{{ x }}",
    "{% set x = 1 %}{% if true %}{% set x = 2 %}{% endif %}{{ x }}",
    "{% set x = 3 %}{{ x * 2 }}",
    "{% set a, b = 1, 2 %}{{ a }}{{ b }}",
    "{% set a = 1, 2 %}{{ a }}",
    "{% set a, b = [1] %}{{ a }}",
    "{% set x = 'a' if flag else 'b' %}{{ x }}",
    "{% set x %}body {{ groups }}{% endset %}[{{ x }}]",
    "{% set ns = namespace(a=0) %}{% for i in range(4) %}{% set ns.a = ns.a + i %}{% endfor %}{{ ns.a }}",
    "{% set ns = namespace() %}{% set ns.b = 'x' %}{{ ns.b }}",
    "{% set d = {} %}{% set d.x = 1 %}{{ d }}",
    "{% set l = [] %}{% for i in range(3) %}{% set _ = l.append(i * i) %}{% endfor %}{{ l }}",
    "{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}",
    "{% with %}{% set z = 5 %}{{ z }}{% endwith %}{{ z is defined }}",
    "{% set a = 1 %}{% with a = 2 %}{{ a }}{% endwith %}{{ a }}",
    "{% raw %}{{ not }} {% touched %}{% endraw %}.",
    "{% raw -%}  x  {%- endraw %} y",
    "{{ '}}' }}",
    "{{ {'a': {'b': 1}}['a']['b'] }}",
    "{{ {'a': {'b': 1}} }}",
    "{{ '{{' }} {{ '%}' }}",
    "{{ 1 }}{{ 2 }}",
    "a: {{ name }} # {{ groups }}",
    "{ { no } }",
    "{",
    "x{",
    "}} %} #}",
    "$ {% if true %}\n\n{% endif %}",
    "{% for g in range(groups) %}\n  - workload.Start:\n      runtime_secs: {{runtime*(groups-g)}}\n{% endfor %}\nteardown:\n",
    "{{",
    "{{ 1",
    "{% if %}x{% endif %}",
    "{% if true %}x",
    "{% endif %}",
    "{% for %}{% endfor %}",
    "{% for x %}{% endfor %}",
    "{% for x in %}{% endfor %}",
    "{% for x in [1] %}x{% endif %}",
    "{% else %}",
    "{% nosuch %}",
    "{# open",
    "{% raw %}x",
    "{{ 'open }}",
    "{{ ) }}",
    "{{ (1] }}",
    "{{ $ }}",
    "{{ }}",
    "{%  %}",
    "{% set %}",
    "{% set 1 = 2 %}",
    "{% set x y %}",
    "{% with a %}{% endwith %}",
    "{{ f(a=1, 2) }}",
    "{{ [1,2][0:1:1:1] }}",
    "{{ 1.x }}",
    "{{ 1. }}",
]


def render(template):
    env = jinja2.Environment(undefined=jinja2.StrictUndefined)
    try:
        return {"template": template, "output": env.from_string(template).render(**VARS)}
    except Exception as error:
        return {"template": template, "error": type(error).__name__}


cases = [render("{{ %s }}" % e) for e in EXPRESSIONS] + [render(t) for t in TEMPLATES]
print(json.dumps({"jinja2": jinja2.__version__, "vars": VARS, "cases": cases}, indent=1, ensure_ascii=False))
