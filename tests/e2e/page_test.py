"""The page of hone serve in a real browser: what people do with it, and what a hostile model's words must not do.

Usage: page_test.py CHROMIUM PAGE.html FOLDER [URL]. FOLDER is for files; with URL also a short talk with a real server there.
Prints TAP lines as the other end-to-end scripts do.
"""

import base64
import hashlib
import json
import os
import sys
import threading

sys.dont_write_bytecode = True
import page_hostile as hostile
from page_browser import Browser, Tab
from page_server import Server, breaks_off, delta, event, goes_on, refuses, says

n_check = n_bad = 0


def check(what, good, seen=None):
    global n_check, n_bad
    n_check += 1
    if not good:
        n_bad += 1
        if seen is not None:
            print('# seen: %s' % str(seen)[:1000].replace('\n', '\n# '))
    print('%s %d - %s' % ('ok' if good else 'not ok', n_check, what), flush=True)


def js(value):
    return json.dumps(value)


class Person:
    """Somebody at the page: what is done is done by keys and clicks, what is seen is read from the document."""

    def __init__(self, browser, server):
        self.server = server
        self.tab = Tab(browser, server.url)
        self.tab.wait('app.props !== null && !$("context").hidden')

    def __getattr__(self, name):
        return getattr(self.tab, name)

    def write(self, text, send=True):
        self.eval('$("input").focus()')
        self.type(text)
        if send:
            self.key('Enter')

    def idle(self):
        """Until no answer is coming any more."""
        self.wait('!app.running && $("stop").hidden && !$("input").value')

    def chat(self, text, answer):
        self.server.answers.put(answer)
        self.write(text)
        self.wait(
            '!app.running && $("stop").hidden && branch(app.talk).some((n) => n.role === "assistant") && '
            '[...branch(app.talk)].pop().role === "assistant"'
        )

    def click(self, selector):
        self.eval('document.querySelector(%s).click()' % js(selector))

    def button(self, message, text):
        """Clicks a button of the message-th message (-1: the last) by its text."""
        self.eval(
            '[...[...document.querySelectorAll("#messages > li")].at(%d).querySelectorAll("button")]'
            '.find((b) => b.textContent === %s || b.getAttribute("aria-label") === %s).click()'
            % (message, js(text), js(text))
        )

    def text(self, message=-1, part='.markdown:last-of-type, .plain'):
        return self.eval('[...document.querySelectorAll("#messages > li")].at(%d).children[3].innerText' % message)

    def figures(self):
        return self.eval(
            '[...document.querySelectorAll("#messages > li")].at(-1).querySelector(".figures").textContent'
        )

    def notice(self):
        return self.eval('$("notice").hidden ? "" : $("notice-text").textContent')

    def fresh(self):
        self.click('#new')
        self.wait('branch(app.talk).length === 0 && !document.querySelector("#messages > li")')


def start(p):
    names = p.call('Accessibility.getFullAXTree')['nodes']
    unnamed = [
        n['role']['value']
        for n in names
        if not n.get('ignored')
        and n.get('role', {}).get('value')
        in ('button', 'textbox', 'searchbox', 'combobox', 'checkbox', 'meter', 'navigation', 'main')
        and not n.get('name', {}).get('value')
    ]
    check('every control and landmark has a name', not unnamed, unnamed)
    roles = {n['role']['value'] for n in names if not n.get('ignored') and 'role' in n}
    check(
        'landmarks: banner, navigation, main, contentinfo',
        {'banner', 'navigation', 'main', 'contentinfo'} <= roles,
        roles,
    )
    check(
        'both languages say everything, with the same values',
        p.eval(
            'Object.entries(STRINGS).filter(([k, v]) => v.length !== 2 || [...v[0].matchAll(/{\\w+}/g)].sort().join() !== '
            '[...v[1].matchAll(/{\\w+}/g)].sort().join()).map((x) => x[0])'
        )
        == [],
    )


def chat(p):
    gate = threading.Event()
    text = 'The **first** part, and the rest: äöü 🙂.'
    p.server.answers.put(
        says(
            {'reasoning_content': 'Is it so?'},
            'The **first**',
            gate,
            ' part, and the rest: äöü 🙂.',
            seed=b'18446744073709551615',
        )
    )
    p.write('Line one')
    p.wait('!!document.querySelector("#messages strong")')
    check(
        'a stream is shown while it comes',
        p.text() == 'The first' and p.eval('!$("stop").hidden && $("send").hidden'),
        p.text(),
    )
    gate.set()
    p.wait('!app.running && branch(app.talk)[1].hash')
    check('… to its end', p.text() == text.replace('**', ''), p.text())
    figures = p.figures()
    check('… its rate beside the roof', '23.1 tok/s, 88 % of what this machine’s memory allows' in figures, figures)
    check('… and the seed, all its digits', 'seed 18446744073709551615' in figures, figures)
    digest = hashlib.sha256(text.encode()).hexdigest()
    check(
        '… and the SHA-256 of the text',
        p.eval('branch(app.talk)[1].hash') == digest and digest[:16] in figures,
        figures,
    )
    check(
        'the same SHA-256 without WebCrypto',
        p.eval(
            '(() => { const out = []; for (const n of [0, 1, 55, 56, 63, 64, 65, 1000]) '
            'out.push(Array.from(sha256Plain(new Uint8Array(n).fill(97)), (b) => b.toString(16).padStart(2, "0")).join("")); return out; })()'
        )
        == [hashlib.sha256(b'a' * n).hexdigest() for n in (0, 1, 55, 56, 63, 64, 65, 1000)],
    )
    check(
        'reasoning is folded',
        p.eval(
            '(() => { const d = document.querySelector("#messages .assistant .reasoning"); return !d.open && !d.hidden; })()'
        ),
    )
    body = p.server.chats()[-1]
    check(
        'the request streams, with usage and a seed',
        body['stream'] is True
        and body['stream_options']['include_usage'] is True
        and body['seed'].isdigit()
        and body['messages'] == [{'role': 'user', 'content': 'Line one'}],
        body,
    )
    check(
        'the context used is shown',
        '30 of 1,000' in p.eval('$("used-text").textContent'),
        p.eval('$("used-text").textContent'),
    )
    check('what was announced is whole sentences', 'part, and the rest' in p.eval('$("spoken").textContent'))


def stop_and_continue(p):
    p.fresh()
    p.server.gone.clear()
    gate = threading.Event()
    p.server.answers.put(goes_on('Begun', gate))
    p.write('Go on')
    p.wait('app.running && app.running.node.content === "Begun"')
    p.key('Escape')
    p.wait('!app.running')
    gate.set()
    check('Esc stops the answer; the server sees it', p.server.gone.wait(10))
    check(
        '… the part stays, and says why it is one', p.text() == 'Begun' and 'stopped by you' in p.figures(), p.figures()
    )
    p.server.answers.put(says(' and ended.'))
    p.button(-1, 'Continue')
    p.idle()
    body = p.server.chats()[-1]
    check(
        'continue asks for the rest of the part',
        body.get('continue_final_message') is True
        and body['add_generation_prompt'] is False
        and body['messages'][-1] == {'role': 'assistant', 'content': 'Begun'},
        body,
    )
    check('… and adds it', p.text() == 'Begun and ended.' and 'complete' in p.figures(), p.text())


def branches(p):
    p.fresh()
    p.chat('Question', says('First answer', seed=b'1'))
    one = p.server.chats()[-1]
    p.server.answers.put(says('Second answer'))
    p.button(-1, 'Again')
    p.idle()
    two = p.server.chats()[-1]
    check(
        'again: the same question with another seed',
        two['messages'] == one['messages'] and two['seed'] != one['seed'],
        two,
    )
    check('… is a second version', p.text() == 'Second answer' and '2/2' in p.eval('$("messages").lastChild.innerText'))
    p.button(-1, 'Previous version')
    check('… and the first is kept', p.text() == 'First answer', p.text())
    check(
        '… the focus stays with the arrows',
        p.eval('document.activeElement.className') == 'next',
        p.eval('document.activeElement.outerHTML'),
    )
    p.eval('$("input").focus()')
    p.key('ArrowUp')
    p.wait('document.activeElement.tagName === "TEXTAREA" && document.activeElement.id !== "input"')
    p.eval('document.activeElement.value = "Another question"')
    p.server.answers.put(says('Third answer'))
    p.key('Enter')
    p.wait('!app.running && branch(app.talk)[1].content === "Third answer"')
    check(
        '↑ edits the last message, which is asked anew',
        p.server.chats()[-1]['messages'] == [{'role': 'user', 'content': 'Another question'}],
    )
    p.button(0, 'Previous version')
    check('… the old branch is kept', p.text(0) == 'Question' and p.text() == 'First answer', p.text())
    p.button(1, 'Edit')
    p.eval('document.activeElement.value = "My own answer"')
    p.button(1, 'Save')
    p.wait('branch(app.talk)[1].content === "My own answer"')
    check('an answer can be edited too, as a version', '3/3' in p.eval('$("messages").lastChild.innerText'))
    p.button(1, 'Delete')
    check('a message can be deleted', p.text() in ('First answer', 'Second answer'), p.text())
    p.click('#notice-actions button')
    check('… and that undone', p.text() == 'My own answer', p.text())
    gate = threading.Event()
    p.server.answers.put(says('Wait', gate, ' for it.'))
    p.write('While I edit')
    p.wait('app.running && app.running.node.content === "Wait"')
    p.button(0, 'Edit')
    p.eval('document.activeElement.value = "Not ready"')
    gate.set()
    p.idle()
    check('an edit outlives an answer that ends meanwhile', p.eval('document.activeElement.value') == 'Not ready')
    p.key('Escape')
    check('… and Esc leaves it as it was', p.text(0) == 'Question' and p.text() == 'Wait for it.', p.text(0))
    p.button(-1, 'Delete')
    p.button(-1, 'Delete')


def reload(p):
    p.write('A draft', send=False)
    before = p.eval('app.talks.length')
    p.wait('store.get(app.talk.id).then((x) => x && x.draft === "A draft")')
    p.call('Page.reload')
    p.wait('typeof app === "object" && app.adapters.length && document.querySelector("#messages > li") !== null')
    check(
        'a reload keeps conversations, the one that is open, its branch',
        p.eval('app.talks.length') == before and p.text() == 'My own answer',
    )
    check('… and the draft', p.eval('$("input").value') == 'A draft')
    p.eval('$("search").value = "line ONE"; $("search").dispatchEvent(new Event("input"))')
    check(
        'the search finds words of messages',
        p.eval('[...document.querySelectorAll("#talks button")].map((b) => b.textContent)') == ['Line one'],
    )
    p.eval(
        '$("search").value = ""; $("search").dispatchEvent(new Event("input")); $("input").value = ""; app.talk.draft = ""'
    )
    p.click('#rename')
    p.type('A new name')
    p.key('Enter')
    p.wait('$("title").textContent === "A new name"')
    p.click('#delete-talk')
    p.wait('app.talks.length === %d && $("notice-text").textContent === "“A new name” was deleted."' % (before - 1))
    p.click('#notice-actions button')
    p.wait('app.talks.length === %d && $("title").textContent === "A new name"' % before)
    check('a conversation can be renamed and deleted, and that undone', True)


def settings(p):
    p.fresh()
    label = (
        lambda text: '[...document.querySelectorAll("#settings .field")].find((f) => f.querySelector("label").textContent === %s)'
        % js(text)
    )
    p.click('#open-settings')
    check(
        'the server’s default and the limits are shown', 'default 0.8' in p.eval(label('Temperature') + '.textContent')
    )
    p.eval(label('Temperature') + '.querySelector("input").value = "7"')
    p.click('#settings button[type=submit]')
    check(
        'a value out of range is refused by name',
        'Temperature: 7 is not within 0 to 5' in p.eval('document.querySelector("#settings .error").textContent'),
    )
    for name, value in (
        ('Temperature', '0.25'),
        ('Top k', '3'),
        ('Seed', '18446744073709551615'),
        ('Most tokens of an answer', '99'),
        ('Adapter style: scale', '0.5'),
    ):
        p.eval(label(name) + '.querySelector("input").value = %s' % js(value))
    p.eval(label('System prompt') + '.querySelector("textarea").value = "Be brief. \\"@seed@\\""')
    p.eval(label('Stop strings, one a line') + '.querySelector("textarea").value = "END\\nSTOP"')
    p.eval(label('Thinking') + '.querySelector("select").value = "none"')
    p.eval(label('JSON schema of the answer') + '.querySelector("textarea").value = "{\\"type\\":\\"object\\"}"')
    p.click('#settings button[type=submit]')
    p.wait('!$("settings").open')
    p.chat('Now', says('{}'))
    b = p.server.chats()[-1]
    wanted = {
        'temperature': 0.25,
        'top_k': '3',
        'seed': '18446744073709551615',
        'max_tokens': '99',
        'stop': ['END', 'STOP'],
        'reasoning_effort': 'none',
        'lora': [{'id': '0', 'scale': 0.5}],
    }
    check('what was set is what is asked, to the last digit', all(b.get(k) == v for k, v in wanted.items()), b)
    check(
        '… with the system prompt first and the schema',
        b['messages'][0] == {'role': 'system', 'content': 'Be brief. "@seed@"'}
        and b['response_format']['json_schema']['schema'] == {'type': 'object'}
        and 'top_p' not in b,
        b,
    )
    p.eval('remember("settings", null)')


def errors(p):
    p.fresh()
    p.server.answers.put(refuses(429, [('Retry-After', '1')], message='full'))
    p.server.answers.put(says('After waiting.'))
    p.write('Are you busy?')
    p.wait('$("notice-text").textContent.startsWith("The server’s queue is full. Asking again in 1 s")')
    p.idle()
    check('429: says so, waits, asks again', p.text() == 'After waiting.' and p.notice() == '', p.notice())
    p.server.answers.put(
        refuses(400, message='too much', code='context_length_exceeded', n_prompt_tokens=2000, n_ctx=1000)
    )
    p.write('Long')
    p.wait('!app.running && !$("notice").hidden')
    check(
        'a conversation that does not fit is said in words',
        'does not fit: 2,000 tokens, and the model holds 1,000' in p.notice(),
        p.notice(),
    )
    check('… the question stays', p.text() == 'Long', p.text())
    p.server.answers.put(refuses(500, message='a <b>bad</b> day\u202e'))
    p.click('#notice-actions button')
    p.wait('$("notice-text").textContent.includes("day")')
    check(
        'an error’s own words are letters only', p.notice() == 'The server failed: a <b>bad</b> day[U+202E]', p.notice()
    )
    gate = threading.Event()
    p.server.answers.put(breaks_off('Half an', ' answer', gate))
    p.click('#notice-actions button')
    p.wait('app.running && app.running.node.content === "Half an answer"')
    gate.set()
    p.wait('!app.running && $("notice-text").textContent.startsWith("The connection was lost")')
    check(
        'a lost connection keeps what came',
        p.text() == 'Half an answer' and 'connection was lost' in p.figures(),
        p.figures(),
    )
    p.server.answers.put(
        lambda h, b: (
            h.begin_stream(),
            h.piece(delta(content='Begun') + event({'error': {'message': 'broke'}})),
            h.end_stream(),
        )
    )
    p.button(-1, 'Again')
    p.wait('!app.running && $("notice-text").textContent === "The server failed: broke"')
    check('an error in the middle of a stream keeps what came', p.text() == 'Begun', p.text())

    p.server.key = 'secret'
    p.fresh()
    p.server.answers.put(says('With a key.'))
    p.write('Who am I?')
    p.wait('$("ask").open')
    p.type('wrong')
    p.key('Enter')
    p.wait('$("ask").open && $("ask").textContent.includes("refused this key")')
    p.type('secret')
    p.key('Enter')
    p.idle()
    check('401: the key is asked for, again where it is wrong', p.text() == 'With a key.', p.text())
    check(
        '… kept for the session only, never in an address',
        p.eval('sessionStorage.getItem("hone.key")') == 'secret'
        and p.eval('localStorage.getItem("hone.key")') is None
        and not any('secret' in a for a in p.asked),
    )
    p.server.key = None

    port = p.server.server_address[1]
    p.server.stop()
    p.write('Anyone there?')
    p.wait('$("notice-text").textContent.startsWith("The server cannot be reached")')
    again = Server(p.server.page, port).start()
    again.answers.put(says('I am back.'))
    p.server = again
    p.idle()
    check(
        'a server that was away is asked again when it is back', p.text() == 'I am back.' and p.notice() == '', p.text()
    )


def limits(p):
    p.fresh()
    p.chat('Fill it', says('Nearly.', prompt=890, tokens=10))
    check(
        'a context that is nearly full is said in words',
        p.eval('$("used-text").textContent') == '900 of 1,000 tokens of context: nearly full',
        p.eval('$("used-text").textContent'),
    )
    p.eval('store.ask = (mode) => (mode === "readwrite" ? Promise.reject(new DOMException("x", "QuotaExceededError")) : [])')
    p.chat('Keep it', says('Not kept.'))
    p.wait('!$("notice").hidden')
    check('a full storage is said in words', p.notice().startswith('The browser’s storage is full'), p.notice())
    p.call('Page.reload')
    p.wait('typeof app === "object" && app.adapters.length > 0')
    p.server.models['data'].append({'id': 'other model/2', 'object': 'model'})
    p.eval('meetServer()')
    p.eval('app.talk.settings.model = "other model/2"; meetModel()')
    check(
        'of several models, the one that is set is asked about',
        p.server.seen[-1][1] == '/props?model=other%20model%2F2' and p.eval('contextSize()') == 500,
        p.server.seen[-1],
    )
    p.server.models['data'].pop()
    p.eval('delete app.talk.settings.model; meetServer()')


def tools(p):
    p.fresh()
    call = [
        {
            'tool_calls': [
                {'index': 0, 'id': 'call_1', 'type': 'function', 'function': {'name': 'weather', 'arguments': ''}}
            ]
        },
        {'tool_calls': [{'index': 0, 'function': {'arguments': '{"city":'}}]},
        {'tool_calls': [{'index': 0, 'function': {'arguments': '"Oslo <b>"}'}}]},
    ]
    p.eval('app.talk.settings.tools = %s' % js(json.dumps([{'type': 'function', 'function': {'name': 'weather'}}])))
    p.chat('Weather?', says(*call, end='tool_calls'))
    check(
        'a call of a tool is a card with its arguments',
        p.eval('document.querySelector("#messages .call").innerText').startswith(
            'Call of weather\n{\n  "city": "Oslo <b>"\n}'
        ),
        p.eval('document.querySelector("#messages .call").innerText'),
    )
    p.eval('document.querySelector("#messages .call textarea").value = "Rain"')
    p.server.answers.put(says('Take an umbrella.'))
    p.button(-1, 'Send results')
    p.wait('!app.running && branch(app.talk).length === 4 && branch(app.talk)[3].hash')
    b = p.server.chats()[-1]
    check(
        '… its pasted result is asked with',
        b['messages'][1:]
        == [
            {
                'role': 'assistant',
                'content': None,
                'tool_calls': [
                    {
                        'id': 'call_1',
                        'type': 'function',
                        'function': {'name': 'weather', 'arguments': '{"city":"Oslo <b>"}'},
                    }
                ],
            },
            {'role': 'tool', 'content': 'Rain', 'tool_call_id': 'call_1'},
        ]
        and b['tools'][0]['function']['name'] == 'weather',
        b,
    )


def logprobs(p):
    p.fresh()
    entry = lambda token, lp: {
        'token': token,
        'logprob': lp,
        'bytes': None,
        'top_logprobs': [{'token': token, 'logprob': lp}, {'token': '<i>', 'logprob': -3.0}],
    }
    p.eval('app.talk.settings.logprobs = true')
    p.chat(
        'Sure?',
        says(
            {'content': 'Yes', 'logprobs': {'content': [entry('Yes', -0.105)]}},
            {'content': '.', 'logprobs': {'content': [entry('.', -1.6)]}},
        ),
    )
    check('probabilities are asked for', p.server.chats()[-1]['top_logprobs'] == '5')
    p.button(-1, 'Tokens')
    check(
        'tokens are shown with numbers',
        p.eval('[...document.querySelectorAll(".token")].map((x) => x.innerText)') == ['Yes90', '.20'],
        p.eval('[...document.querySelectorAll(".token")].map((x) => x.innerText)'),
    )
    p.eval('document.querySelector(".token").focus()')
    p.key('ArrowRight')
    check(
        '… alternatives where the focus is',
        '<i> 5 %' in p.eval('document.querySelector(".others").innerText'),
        p.eval('document.querySelector(".others").innerText'),
    )
    p.button(-1, 'Text')
    check('… and the text again', p.text() == 'Yes.', p.text())


def files(p, folder, hone):
    p.fresh()
    paths = {'notes.txt': 'a ``` b\nüber'.encode(), 'picture.bin': b'\x89PNG\xff\x00'}
    for name, data in paths.items():
        with open(os.path.join(folder, name), 'wb') as f:
            f.write(data)
    pick = lambda selector, names: p.call(
        'DOM.setFileInputFiles',
        files=[os.path.join(folder, x) for x in names],
        objectId=p.call('Runtime.evaluate', expression='document.querySelector(%s)' % js(selector))['result'][
            'objectId'
        ],
    )
    pick('#attach-file', paths)
    p.wait('!$("notice").hidden')
    check(
        'what is no text is not attached',
        'picture.bin is not text' in p.notice() and p.eval('$("files").children.length') == 1,
        p.notice(),
    )
    p.chat('Look', says('Seen.'))
    check(
        'a file goes along between fences that it cannot close',
        p.server.chats()[-1]['messages'][0]['content'] == 'notes.txt:\n````\na ``` b\nüber\n````\n\nLook',
        p.server.chats()[-1],
    )
    p.eval(
        'app.talk.settings.seed = "9223372036854775807"; app.talk.settings.temperature = 0.5; app.talk.settings.system = "S\\u202e"'
    )
    p.chat('And?', says({'reasoning_content': 'Hm.'}, 'More "words" \\ 🙂.'))
    text = p.eval('exportTalk(app.talk)')
    exported = os.path.join(folder, 'talk.json')
    with open(exported, 'w', encoding='utf-8') as f:
        f.write(text)
    import subprocess

    saved = os.path.join(folder, 'saved.json')
    r = (
        subprocess.run(
            [hone, 'chat', '-m', 'models/hone-tiny.gguf', '--chat-template', 'chatml', '--commands'],
            capture_output=True,
            input=('/load %s\n/save %s\n' % (exported, saved)).encode(),
            timeout=60,
        )
        if hone
        else None
    )
    if hone:
        ours, theirs = json.loads(text), json.load(open(saved)) if os.path.exists(saved) else {}
        check('hone chat reads the export', theirs.get('messages') == ours['messages'], r.stderr.decode())
        check(
            '… its parameters too',
            theirs['params']['seed'] == 9223372036854775807 and theirs['params']['temp'] == 0.5,
            theirs.get('params'),
        )
        pick('#import-file', ['saved.json'])
        p.wait('$("notice-text").textContent === "Imported: 1"')
        check('… the seed to its last digit', p.eval('app.talk.settings.seed') == '9223372036854775807')
        check(
            'the page reads what hone chat saved',
            p.eval('messagesOf(branch(app.talk), app.talk.settings.system)') == ours['messages'],
        )
    with open(exported, 'w', encoding='utf-8') as f:
        f.write(p.eval('exportAll(app.talks)'))
    n = p.eval('app.talks.length')
    before = p.eval('JSON.stringify(app.talks.map((x) => [x.title, x.nodes]).sort())')
    pick('#import-file', ['talk.json'])
    p.wait('app.talks.length === %d && $("notice-text").textContent === "Imported: %d"' % (2 * n, n))
    twice = p.eval('JSON.stringify(app.talks.map((x) => [x.title, x.nodes]).sort())')
    # probabilities of tokens stay behind; all else, branches included, is there twice
    strip = lambda s: sorted(
        json.dumps([t, [dict((k, v) for k, v in x.items() if k != 'logprobs') for x in m.values()]], sort_keys=True)
        for t, m in json.loads(s)
    )
    check('all conversations with their branches are exported and imported', sorted(strip(before) * 2) == strip(twice))
    for wrong in (
        '{"schema":"hone.chat/2","messages":[]}',
        '[1]',
        '{"schema":"hone.chat/1","messages":[{"role":"user","content":5}]}',
        '{',
        '{"schema":"hone.chat/1","tree":{"nodes":{"__proto__x":{"role":"user","content":"x","parent":""}}}}',
    ):
        with open(os.path.join(folder, 'wrong.json'), 'w') as f:
            f.write(wrong)
        p.eval('notice("")')
        pick('#import-file', ['wrong.json'])
        p.wait('$("notice-text").textContent.startsWith("wrong.json was not imported")')
    check('wrong files are refused, with the reason', p.eval('app.talks.length') == 2 * n)


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
]
BARE = '((root) => { for (const e of root.querySelectorAll("*")) for (const a of [...e.attributes]) e.removeAttribute(a.name); return root.innerHTML; })'


def markdown(p):
    wrong = []
    for text, wanted in MARKDOWN:
        seen = p.eval(
            '(() => { const root = el("div", {}); new MarkdownView(root).update(%s, true); return %s(root); })()'
            % (js(text), BARE)
        )
        if seen != wanted:
            wrong.append('%r: %s, expected %s' % (text, seen, wanted))
    check('Markdown: %d samples' % len(MARKDOWN), not wrong, '\n'.join(wrong))
    wrong = p.eval(
        '(() => { const wrong = []; for (const text of %s) { const a = el("div", {}), b = el("div", {}), v = new MarkdownView(a); '
        'for (let i = 1; i <= text.length; i++) v.update(text.slice(0, i), false); v.update(text, true); new MarkdownView(b).update(text, true); '
        'if (a.innerHTML !== b.innerHTML) wrong.push([text, a.innerHTML]); } return wrong; })()'
        % js(
            [m[0] for m in MARKDOWN]
            + ['\n\n'.join(m[0] for m in MARKDOWN), *hostile.BREAKOUTS, *[h[0] for h in hostile.HIDDEN]]
        )
    )
    check('… letter by letter the same as at once', wrong == [], wrong)


ALLOWED = {
    'P': 'dir',
    'EM': '',
    'STRONG': '',
    'DEL': '',
    'CODE': 'class',
    'PRE': 'tabindex role aria-label dir',
    'A': 'href rel target',
    'UL': 'dir',
    'OL': 'dir start',
    'LI': '',
    'BLOCKQUOTE': 'dir',
    'HR': '',
    'BR': '',
    'H3': 'dir',
    'H4': 'dir',
    'H5': 'dir',
    'H6': 'dir',
    'TABLE': '',
    'THEAD': '',
    'TBODY': '',
    'TR': '',
    'TH': 'class dir',
    'TD': 'class dir',
    'DIV': 'class tabindex role',
    'SPAN': 'class title',
    'BUTTON': 'type class',
}
# all elements and attributes that are not allowed, and addresses that may not be followed
FOREIGN = (
    '((root) => { const allowed = %s, bad = []; for (const e of root.querySelectorAll("*")) { const a = allowed[e.tagName]; '
    'if (a === undefined || e.namespaceURI !== "http://www.w3.org/1999/xhtml") bad.push(e.outerHTML); '
    'else for (const x of e.attributes) if (!a.split(" ").includes(x.name)) bad.push(x.name + " in " + e.outerHTML); '
    'if (e.tagName === "A" && (!["http:", "https:", "mailto:"].includes(e.protocol) || e.username || !e.getAttribute("href").match(/^(https?|mailto):/) || '
    'e.rel !== "noopener noreferrer nofollow" || !e.textContent.includes(e.hostname))) bad.push(e.outerHTML); } return bad; })'
    % js(ALLOWED)
)


def injection(p):
    p.fresh()
    asked = len(p.asked)
    corpus = hostile.MARKUP + hostile.LINKS + hostile.BREAKOUTS + hostile.ANSI + [h[0] for h in hostile.HIDDEN]
    p.chat(
        '<img src=x onerror=window.harmed=1>\u202e',
        says({'reasoning_content': '\n\n'.join(corpus)}, *[x + '\n\n' for x in corpus]),
    )
    p.eval('for (const d of document.querySelectorAll("details")) d.open = true')
    check(
        '%d hostile texts, as one answer: no element, attribute or address but the allowed' % len(corpus),
        p.eval('[...document.querySelectorAll("#messages .markdown, #messages .plain")].flatMap(%s)' % FOREIGN) == [],
        p.eval('[...document.querySelectorAll("#messages .markdown, #messages .plain")].flatMap(%s)' % FOREIGN),
    )
    wrong = p.eval(
        '(() => { const bad = []; for (const text of %s) { const root = el("div", {}); document.body.append(root); '
        'new MarkdownView(root).update(text, true); bad.push(...%s(root)); root.remove(); } return bad; })()'
        % (js(corpus), FOREIGN)
    )
    check('… and one by one', wrong == [], wrong)
    wrong = [
        x
        for x in hostile.HIDDEN
        if x[1]
        not in p.eval(
            '(() => { const root = el("div", {}); new MarkdownView(root).update(%s, true); '
            'return [...root.querySelectorAll(".unseen, .address, .code-head")].map((e) => e.textContent + e.title)'
            '.join(" ") + root.textContent; })()' % js(x[0])
        )
    ]
    check('… what is invisible or turns text around is spelt out', not wrong, wrong)
    plain = p.eval('%s.map((x) => shown(x).length)' % js(hostile.SHOWN_AS_IS))
    check('… emoji, joiners of scripts and accents are not', plain == [1] * len(plain), plain)
    call = {
        'tool_calls': [
            {
                'index': 0,
                'id': '"><img src=x onerror=%s>' % hostile.HARM,
                'function': {'name': '<svg onload=%s>\u202e' % hostile.HARM, 'arguments': '<script>'},
            }
        ]
    }
    p.chat('x', says(call, end='tool_calls'))
    p.eval('Object.assign(app.models[0], { id: "<img src=x onerror=%s>" }), app.draw()' % hostile.HARM)
    p.click('#open-settings')
    p.eval('$("settings").close()')
    check(
        'one script, one style, nothing that loads',
        p.eval(
            '[document.scripts.length, document.styleSheets.length, '
            'document.querySelectorAll("img, svg, iframe, object, embed, video, audio, form[action], base, math, template, link[rel=stylesheet]").length]'
        )
        == [1, 1, 0],
    )
    check('no script of theirs has run', p.eval('window.harmed === undefined'))
    check(
        'no request but to the API',
        all(
            a in [p.server.url + x for x in ('v1/chat/completions', 'tokenize', 'lora-adapters', 'props', 'v1/models')]
            for a in p.asked[asked:]
        ),
        p.asked[asked:],
    )
    p.eval('app.models[0].id = "test-model"')


def costly(p):
    times = p.eval(
        '(() => { const out = {}; for (const [name, text] of Object.entries(%s)) { const root = el("div", {}), from = performance.now(); '
        'new MarkdownView(root).update(text, true); out[name] = [Math.round(performance.now() - from), root.querySelectorAll("*").length, '
        '(function depth(e) { let d = 0; for (const x of e.children) d = Math.max(d, 1 + depth(x)); return d; })(root)]; } return out; })()'
        % js(hostile.COSTLY)
    )
    slow = sorted(times.items(), key=lambda x: -x[1][0])
    print('# slowest of 200 KB, ms, elements, depth: %s' % slow[:5])
    check(
        '%d costly shapes of 200 KB are shown, none nested deeply' % len(times),
        max(t[2] for t in times.values()) < 60,
        times,
    )
    p.fresh()
    text = ('A sentence with *words* and `code`, and more of it.\n' * 4 + '\n') * 1000
    p.chat('Much', says(*[text[i : i + 1000] for i in range(0, len(text), 1000)]))
    check(
        'an answer of 200 KB comes whole',
        p.eval('branch(app.talk)[1].content.length') == len(text)
        and p.eval('document.querySelectorAll("#messages .markdown p").length') == 1000,
    )


CONTRAST = """((selectors) => {
  const rgb = (s) => s.match(/[\\d.]+/g).map(Number);
  const light = (c) => c.slice(0, 3).map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (e) => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > 0) return c; } };
  const bad = [];
  for (const e of document.querySelectorAll('button, p, li, a, span, h1, h2, h3, summary, code, pre, label, small, input, textarea, select, td, th')) {
    if (!e.checkVisibility() || e.disabled || ![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())) continue;
    const a = light(rgb(getComputedStyle(e).color)), b = light(behind(e)), ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) bad.push([e.outerHTML.slice(0, 80), ratio]);
  }
  return bad; })()"""
SMALL = (
    '[...document.querySelectorAll("button, input, select, summary, textarea")].filter((e) => e.checkVisibility()).map((e) => [e.outerHTML.slice(0, 80), '
    'e.getBoundingClientRect()]).filter(([x, r]) => r.width && (r.width < 24 || r.height < 24)).map(([x, r]) => [x, r.width, r.height])'
)


def looks(p, folder):
    p.fresh()
    p.chat(
        'Show me **everything**',
        says(
            {'reasoning_content': 'Thinking of *all* of it.'},
            '\n\n'.join(m[0] for m in MARKDOWN[:11])
            + '\n\n```python\n# a comment\ndef f(x): return "text" + 12\n```\n\nA\u202eB [link](https://a.example/)',
        ),
    )
    for theme in ('light', 'dark'):
        p.call('Emulation.setEmulatedMedia', features=[{'name': 'prefers-color-scheme', 'value': theme}])
        check('contrast is at least 4.5, %s' % theme, p.eval(CONTRAST) == [], p.eval(CONTRAST))
        for width, height in ((1100, 800), (320, 640)):
            p.size(width, height)
            with open(os.path.join(folder, '%s-%d.png' % (theme, width)), 'wb') as f:
                f.write(base64.b64decode(p.picture()))
    for width, height in ((320, 640), (320, 256)):
        p.size(width, height)
        check(
            '%d × %d: nothing is wider than the screen' % (width, height),
            p.eval('document.documentElement.scrollWidth <= %d' % width)
            and p.eval('$("main").scrollWidth <= $("main").clientWidth'),
            p.eval(
                '[...document.querySelectorAll("*")].filter((e) => e.getBoundingClientRect().right > %d).map((e) => e.outerHTML.slice(0, 100))'
                % width
            ),
        )
    check('nothing to press is smaller than 24 pixels', p.eval(SMALL) == [], p.eval(SMALL))
    p.size(320, 640)
    p.click('#menu')
    check(
        'the list opens on a narrow screen',
        p.eval('$("side").checkVisibility() && $("menu").getAttribute("aria-expanded")') == 'true',
    )
    p.key('Escape')
    check('… and Esc closes it', not p.eval('$("side").checkVisibility()'))
    p.click('#open-settings')
    check(
        'settings fit too',
        p.eval('$("settings").scrollWidth <= $("settings").clientWidth') and p.eval(SMALL) == [],
        p.eval(SMALL),
    )
    with open(os.path.join(folder, 'settings-320.png'), 'wb') as f:
        f.write(base64.b64decode(p.picture()))
    p.eval('[...document.querySelectorAll("#settings select")].find((s) => s.value === "en").value = "de"')
    p.click('#settings button[type=submit]')
    check(
        'German: the page’s language and words',
        p.eval('document.documentElement.lang + $("send").textContent') == 'deSenden' and '23,1' in p.figures(),
        p.figures(),
    )
    p.size(1100, 800)
    with open(os.path.join(folder, 'german.png'), 'wb') as f:
        f.write(base64.b64decode(p.picture()))
    p.eval('remember("lang", "en"); applyLook(); app.views.clear(); $("messages").replaceChildren(); app.draw()')
    p.call('Emulation.setEmulatedMedia', features=[])


def keyboard(p):
    p.fresh()
    p.chat('Press keys', says('Pressed.'))
    p.eval('document.querySelector(".skip").focus()')
    seen = []
    for _ in range(60):
        p.key('Tab')
        seen.append(
            p.eval(
                '(document.activeElement.id || document.activeElement.textContent.slice(0, 20)) + '
                '(getComputedStyle(document.activeElement).outlineStyle === "none" ? " without outline" : "")'
            )
        )
        if seen[-1].startswith('send') or seen.count(seen[-1]) > 2:
            break
    wanted = [
        'open-settings',
        'new',
        'search',
        'export-all',
        'import',
        'rename',
        'export',
        'delete-talk',
        'Copy',
        'Edit',
        'Again',
        'Continue',
        'Delete',
        'input',
        'attach',
        'send',
    ]
    order = [len(seen) - seen[::-1].index(w) if w in seen else -1 for w in wanted]
    check('Tab reaches everything, in the order it is read', -1 not in order and order == sorted(order), seen)
    check('… and the focus is always seen', not [s for s in seen if s.endswith('without outline')], seen)
    p.server.answers.put(says('Pressed again.'))
    p.eval('[...document.querySelectorAll("#messages button")].find((b) => b.textContent === "Again").focus()')
    p.key('Enter')
    p.wait('!app.running && branch(app.talk)[1].content === "Pressed again."')
    check('a button works by its key, and the focus is not lost', p.eval('document.activeElement.id') == 'input')
    p.write('one', send=False)
    p.key('Enter', shift=True)
    p.type('two')
    check(
        'Shift+Enter begins a line',
        p.eval('$("input").value') == 'one\ntwo' and p.eval('!app.running'),
        p.eval('$("input").value'),
    )
    p.eval('$("input").value = ""')


def real(browser, url):
    """A short talk with hone serve itself: its policy lets the page run, its answers are understood."""
    tab = Tab(browser, url)
    tab.wait('typeof app === "object" && app.props && app.models.length > 0')
    tab.eval('app.talk.settings.max_tokens = 8; $("input").focus()')
    tab.type('Hello')
    tab.key('Enter')
    tab.wait('!app.running && branch(app.talk).length === 2')
    n = tab.eval('branch(app.talk)[1]')
    check(
        'hone serve: an answer',
        n['end'] in ('stop', 'length') and n['stats'].get('tokens', 0) > 0 and n['stats'].get('rate', 0) > 0,
        n,
    )
    check('hone serve: a seed, a rate, a context', 'seed' in n['stats'] and tab.eval('contextSize()') > 0, n)
    check(
        'hone serve: no error, no request elsewhere',
        tab.errors == [] and all(a.startswith(url) for a in tab.asked),
        tab.errors + tab.asked,
    )


def main():
    chromium, page, folder = sys.argv[1:4]
    hone = os.environ.get('HONE')
    server = Server(open(page, 'rb').read()).start()
    browser = Browser(chromium, os.path.join(folder, 'profile'))
    try:
        p = Person(browser, server)
        for scenario in (
            start,
            chat,
            stop_and_continue,
            branches,
            reload,
            settings,
            errors,
            limits,
            tools,
            logprobs,
            lambda x: files(x, folder, hone),
            markdown,
            injection,
            costly,
            lambda x: looks(x, folder),
            keyboard,
        ):
            try:
                scenario(p)
            except (TimeoutError, RuntimeError) as e:
                check('%s: to its end' % getattr(scenario, '__name__', ''), False, e)
                p.eval('app.stop(); $("settings").close(); $("ask").close(); sessionStorage.clear()')
                p.server.key = None
                while not p.server.answers.empty():
                    p.server.answers.get()
        check('the browser had nothing to complain of', p.errors == [], p.errors)
        check(
            'everything was asked of the page’s own server',
            all(a.startswith((server.url, 'blob:')) for a in p.asked),
            p.asked,
        )
        if len(sys.argv) > 4:
            real(browser, sys.argv[4])
    finally:
        browser.close()
    print('1..%d' % n_check)
    return 1 if n_bad else 0


sys.exit(main())
