"""What a model writes: Markdown as it should be seen, and texts that want more than to be read."""

import page_hostile as hostile
from page_person import check, js
from page_server import says

MARKDOWN = [  # text, what it becomes: tags without attributes
    ('# One\n## Two ##\nText', '<h3>One</h3><h4>Two</h4><p>Text</p>'),
    (
        'a *b* **c** ***d*** ~~e~~ _f_ x_y_z',
        '<p>a <em>b</em> <strong>c</strong> <em><strong>d</strong></em> <del>e</del> <em>f</em> x_y_z</p>',
    ),
    ('* a\n* b\n  * c\n\n1. d\n2. e', '<ul><li>a</li><li>b<ul><li>c</li></ul></li></ul><ol><li>d</li><li>e</li></ol>'),
    ('3) a\n\n4) b', '<ol><li><p>a</p></li><li><p>b</p></li></ol>'),
    ('- [ ] a\n- [x] b', '<ul><li>☐ a</li><li>☑ b</li></ul>'),
    ('> a\n> > b\nc', '<blockquote><p>a</p><blockquote><p>b\nc</p></blockquote></blockquote>'),
    ('a\n\n---\n\nb', '<p>a</p><hr><p>b</p>'),
    ('T\n===\nS\n---', '<h3>T</h3><h4>S</h4>'),
    (
        '| a | b |\n|:-:|--:|\n| `x|y` | 2\\|3 |\nafter',
        '<div><table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td><code>x|y</code></td>'
        '<td>2|3</td></tr><tr><td>after</td></tr></tbody></table></div>',
    ),
    (
        '```\na\n\n b\n```\nc',
        '<div><div><span>Code</span><button>Copy</button></div><pre><code>a\n\n b</code></pre></div><p>c</p>',
    ),
    (
        '- a\n  ```\n  b\n  ```\n- c',
        '<ul><li>a<div><div><span>Code</span><button>Copy</button></div><pre><code>b</code></pre></div></li><li>c</li></ul>',
    ),
    ('`a` ``b`c`` `d', '<p><code>a</code> <code>b`c</code> `d</p>'),
    ('\\*a\\* &amp; &lt; 1 < 2', '<p>*a* &amp; &lt; 1 &lt; 2</p>'),
    (
        'costs $5 and $6, but $x_1 * y_1$ and \\(a*b*c\\)',
        '<p>costs $5 and $6, but <code>$x_1 * y_1$</code> and <code>\\(a*b*c\\)</code></p>',
    ),
    (
        '[t](https://a.example/b_c_d "x") <https://b.example/>',
        '<p><a>t<span> (https://a.example/b_c_d)</span></a> <a>https://b.example/</a></p>',
    ),
    ('see https://a.example/x(y), ok', '<p>see <a>https://a.example/x(y)</a>, ok</p>'),
    ('![pic](https://a.example/i.png)', '<p><a>image: pic<span> (https://a.example/i.png)</span></a></p>'),
    ('one  \ntwo\\\nthree\nfour', '<p>one  <br>two<br>three\nfour</p>'),
    ('Here:\n1. a\n2. b', '<p>Here:</p><ol><li>a</li><li>b</li></ol>'),
    ('In 1990\n2. was', '<p>In 1990\n2. was</p>'),
    ('[unclosed](https://a.example', '<p>[unclosed](<a>https://a.example</a></p>'),
    ('**open and *both', '<p>**open and *both</p>'),
    (
        '[https://a.example](https://a.example) and [https://b.example',
        '<p><a>https://a.example</a> and [<a>https://b.example</a></p>',
    ),
    ('[<https://b.example/>](https://a.example/)', '<p><a>https://b.example/<span> (https://a.example/)</span></a></p>'),
    ('1.\ta\n2.\tb\n\t-\tc', '<ol><li>a</li><li>b<ul><li>c</li></ul></li></ol>'),
    ('a ~b~ ~~~c~~~', '<p>a ~b~ ~<del>c</del>~</p>'),
    ('<https://\u0430pple.com/>', '<p><a>https://\u0430pple.com/<span> (https://xn--pple-43d.com/)</span></a></p>'),
    ('https://a.example/k\u00f6ln', '<p><a>https://a.example/k\u00f6ln</a></p>'),
    (
        '[x](https://%s.evil.example/y)' % '.'.join(['good-example'] * 10),
        '<p><a>x<span> (https://%s.evil.example…)</span></a></p>' % '.'.join(['good-example'] * 10),
    ),
    (
        '\ta\n\t\tb',
        '<div><div><span>Code</span><button>Copy</button></div><pre><code>a\n\tb</code></pre></div>',
    ),
]


def markdown(p):
    wrong = []
    for text, wanted in MARKDOWN:
        seen = p.probe('bare', text)
        if seen != wanted:
            wrong.append('%r: %s, expected %s' % (text, seen, wanted))
    check('Markdown: %d samples' % len(MARKDOWN), not wrong, '\n'.join(wrong))
    samples = [m[0] for m in MARKDOWN]
    wrong = p.probe('changing', samples + ['\n\n'.join(samples)] + hostile.BREAKOUTS + [h[0] for h in hostile.HIDDEN])
    check('… letter by letter the same as at once', wrong == [], wrong)


def injection(p):
    p.fresh()
    asked = len(p.asked)
    corpus = hostile.MARKUP + hostile.LINKS + hostile.BREAKOUTS + hostile.ANSI + [h[0] for h in hostile.HIDDEN]
    p.chat(
        '<img src=x onerror=window.harmed=1>\u202e',
        says({'reasoning_content': '\n\n'.join(corpus)}, *[x + '\n\n' for x in corpus]),
    )
    p.eval('for (const d of document.querySelectorAll("details")) d.open = true')
    wrong = p.eval('[...document.querySelectorAll("#messages .markdown, #messages .plain")].flatMap(probe.foreign)')
    check(
        '%d hostile texts, as one answer: no element, attribute or address but the allowed' % len(corpus),
        wrong == [],
        wrong,
    )
    wrong = p.probe('foreignTexts', corpus)
    check('… and one by one', wrong == [], wrong)
    wrong = [(text, code) for text, code in hostile.HIDDEN if code not in p.probe('spelt', text)]
    check('… what is invisible or turns text around is spelt out', not wrong, wrong)
    plain = p.eval('%s.map((x) => shown(x).length)' % js(hostile.SHOWN_AS_IS))
    check('… emoji, joiners of scripts and accents are not', plain == [1] * len(plain), plain)

    function = {'name': '<svg onload=%s>\u202e' % hostile.HARM, 'arguments': '<script>'}
    call = {'index': 0, 'id': '"><img src=x onerror=%s>' % hostile.HARM, 'function': function}
    p.chat('x', says({'tool_calls': [call]}, end='tool_calls'))
    p.eval('app.models[0].id = "<img src=x onerror=%s>"; app.draw()' % hostile.HARM)
    p.click('#open-settings')
    p.eval('$("settings").close()')
    loads = 'img, svg, iframe, object, embed, video, audio, form[action], base, math, template, link[rel=stylesheet]'
    seen = p.eval(
        '[document.scripts.length, document.styleSheets.length, document.querySelectorAll("%s").length]' % loads
    )
    check('one script, one style, nothing that loads', seen == [1, 1, 0], seen)
    check('no script of theirs has run', p.eval('window.harmed === undefined'))
    api = [p.server.url + x for x in ('v1/chat/completions', 'tokenize', 'lora-adapters', 'props', 'v1/models')]
    check('no request but to the API', all(a in api for a in p.asked[asked:]), p.asked[asked:])
    p.eval('app.models[0].id = "test-model"')


def costly(p):
    small, large = hostile.costly(4096), hostile.costly(32768)
    deep = [name for name in large if p.probe('depth', large[name]) >= 60]
    check('%d costly shapes: none is nested deeply' % len(large), deep == [], deep)
    # eight times the text: about eight times the work, where squares would be 64 times; what is quick tells nothing
    steep = []
    for name in large:
        for _ in range(4):
            a, b = p.probe('milliseconds', small[name]), p.probe('milliseconds', large[name])
            if b < 20 or b < 24 * a:
                break
        else:
            steep.append((name, a, b))
    check('… none grows faster than its text', steep == [], steep)
    p.fresh()
    text = ('A sentence with *words* and `code`, and more of it.\n' * 4 + '\n') * 1000
    p.chat('Much', says(*[text[i : i + 1000] for i in range(0, len(text), 1000)]))
    check(
        'an answer of 200 KB comes whole',
        p.eval('branch(app.talk)[1].content.length') == len(text)
        and p.eval('document.querySelectorAll("#messages .markdown p").length') == 1000,
    )
