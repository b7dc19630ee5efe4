"""Texts that want more than to be read: markup, addresses that run, letters that hide or turn around, and shapes that cost."""

HARM = 'window.harmed=1'
MARKUP = [
    '<script>%s</script>' % HARM, '</script><script>%s</script>' % HARM, '<img src=x onerror=%s>' % HARM, '<svg onload=%s>' % HARM,
    '<svg><script>%s</script></svg>' % HARM, '<iframe src="javascript:%s"></iframe>' % HARM, '<iframe srcdoc="<b>x</b>"></iframe>',
    '<object data="data:text/html,x"></object>', '<embed src="https://evil.example/x">', '<base href="https://evil.example/">',
    '<link rel=stylesheet href=https://evil.example/x.css>', '<style>*{background:url(https://evil.example/)}</style>',
    '<meta http-equiv=refresh content="0;url=https://evil.example/">', '<form action=https://evil.example/><input name=a><button>x',
    '<math><mtext><style><img src=x onerror=%s>' % HARM, '<details open ontoggle=%s>x' % HARM, '<video><source onerror=%s>' % HARM,
    '<a href="javascript:%s">x</a>' % HARM, '<div onmouseover=%s style=position:fixed;inset:0>x</div>' % HARM, '<!-- --><b>x</b>',
    '<template><script>%s</script></template>' % HARM, '<body onload=%s>' % HARM, '&lt;img src=x onerror=%s&gt;' % HARM,
    '&#60;script&#62;%s&#60;/script&#62;' % HARM, '<dialog open>x</dialog>', '<portal src=https://evil.example></portal>',
]
ADDRESSES = [
    'javascript:%s' % HARM, 'JaVaScRiPt:%s' % HARM, ' javascript:%s' % HARM, 'java\tscript:%s' % HARM, '\x01javascript:%s' % HARM,
    'javascript&colon;%s' % HARM, '&#106;avascript:%s' % HARM, 'javascript://https://x/%%0a%s' % HARM,
    'data:text/html,<script>%s</script>' % HARM, 'data:text/html;base64,PHNjcmlwdD4=', 'vbscript:x', 'file:///etc/passwd', 'blob:https://x/1',
    'about:blank', 'view-source:https://x/', '//evil.example/x', '/props', '#', '../v1/models', 'https://user:pass@evil.example/',
    'https://good.example@evil.example/', 'ftp://x/', 'intent://x', 'filesystem:https://x/', 'ht\ntps://x', 'https:///',
]
LINKS = [form % a for a in ADDRESSES for form in ('[x](%s)', '![x](%s)', '<%s>', '[x](<%s>)', '[x](%s "t")', '%s')]
BREAKOUTS = [
    '[x](https://a.example/"onmouseover="%s)' % HARM, '[x](https://a.example/ "t\\"onmouseover=%s")' % HARM,
    '![x" onerror="%s](https://a.example/i.png)' % HARM, '```"><script>%s</script>\ncode\n```' % HARM,
    '```js onload=%s\nx\n```' % HARM, '| <img src=x onerror=%s> | b |\n|---|---|\n| <svg/onload=%s> | y |' % (HARM, HARM),
    '# <img src=x onerror=%s>' % HARM, '> <script>%s</script>' % HARM, '- <script>%s</script>' % HARM, '**<b onclick=%s>x</b>**' % HARM,
    '[<img src=x onerror=%s>](https://a.example/)' % HARM, '`<script>%s</script>`' % HARM, '$<script>%s</script>$' % HARM,
    '[x]: javascript:%s\n\n[x]' % HARM, '<https://a.example/<script>%s</script>>' % HARM, '[a](https://a.example/)<iframe>',
    '[[x](https://a.example/)](javascript:%s)' % HARM, '[![x](https://a.example/i.png)](https://b.example/)',
]
ANSI = ['\x1b[31mred\x1b[0m', '\x1b]8;;https://evil.example\x07x\x1b]8;;\x07', '\x9b31m', 'a\x08b\x7f\x00c', '\x1b[2J\x1b[H', 'one\rtwo']
HIDDEN = [  # (text, what must be spelt out)
    ('abc\u202edcba', 'U+202E'), ('a\u2066b\u2069', 'U+2066'), ('a\u200bb', 'U+200B'), ('a\ufeffb', 'U+FEFF'), ('a\u00adb', 'U+00AD'),
    ('a\u2060b', 'U+2060'), ('a\u200db', 'U+200D'), ('\U000e0041\U000e0042', 'U+E0041'), ('x\U000e0100', 'U+E0100'), ('a\u3164b', 'U+3164'),
    ('a\u061cb', 'U+061C'), ('a\u200eb', 'U+200E'), ('a\u2028b', 'U+2028'), ('a\x1bb', 'U+001B'), ('a\ufe00\ufe01b', 'U+FE01'),
    ('`a\u202eb`', 'U+202E'), ('```\na\u202eb\n```', 'U+202E'), ('[a\u202eb](https://a.example/)', 'U+202E'), ('&#x202e;x', 'U+202E'),
    ('[x](https://a.example/\u202eb)', '%E2%80%AE'), ('# a\u202eb', 'U+202E'), ('| a\u202e | b |\n|---|---|', 'U+202E'),
]
SHOWN_AS_IS = ['👩‍🚀 ❤️‍🔥 1️⃣ 🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f', 'می\u200cخواهم', 'क्\u200dष', 'naïve — “quoted” … żółć 漢字']

SIZE = 200 * 1024


def filled(text):
    return (text * (SIZE // len(text.encode()) + 1))[:SIZE]


COSTLY = {
    'one word': filled('a'), 'paragraphs': filled('Some *words* and `code`.\n\n'), 'blanks': 'x' + ' ' * SIZE + 'y', 'quotes': filled('>'),
    'nested lists': filled('- '), 'stars': filled('*a '), 'mixed emphasis': filled('*a _b ~~c '), 'closed emphasis': filled('a**b*c '),
    'brackets': filled('['), 'open links': filled('[a]('), 'closed brackets': filled(']('), 'images': filled('![a'), 'ticks': filled('`a``b'),
    'dollars': filled('$a '), 'escapes': filled('\\('), 'hashes': '# ' + '#' * SIZE + ' x', 'dashes': filled('- - '), 'rule': '-' * SIZE + 'x',
    'pipes': filled('|') + '\n' + filled('|-'), 'rows': '|a|b|\n|-|-|\n' + filled('|x|y|\n'), 'address': 'http://' + filled('!'),
    'addresses': filled('http://a.b/) '), 'open fence': '```js\n' + filled('let x = "a"; // y\n'), 'strings': '```js\n' + filled('"\\') + '\n```',
    'entities': filled('&#x202e;'), 'unseen': filled('\u202e'), 'items': filled('1. a\n\n   b\n'), 'lines': filled('\n'), 'table blanks': 'a|b\n--' + ' ' * SIZE + 'x',
    'deep emphasis': '*a ' * 20000 + 'b* ' * 20000, 'deep strong': '**a ' * 15000 + 'b** ' * 15000, 'angles': filled('<http://a'),
}
