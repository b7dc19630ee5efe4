"""What people do with the page: talk, stop, branch, come back later, set, wait, attach, export."""

import hashlib
import json
import os
import subprocess
import threading

from page_person import Person, check, js
from page_server import Server, breaks_off, delta, event, goes_on, refuses, says


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
    wrong = p.probe('unlabelled')
    p.click('#open-settings')
    wrong += p.probe('unlabelled')
    p.eval('$("settings").close()')
    check('every field has a label, those of the settings too', wrong == [], wrong)
    missing = p.probe('untranslated')
    check('both languages say everything, with the same values', missing == [], missing)


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
    check('… and nothing is announced before a sentence ends', p.eval('$("spoken").textContent') == '')
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
    sizes = (0, 1, 55, 56, 63, 64, 65, 1000)
    hashes = [p.probe('plainHash', n) for n in sizes]
    check('the same SHA-256 without WebCrypto', hashes == [hashlib.sha256(b'a' * n).hexdigest() for n in sizes], hashes)
    check(
        'reasoning is folded',
        p.eval('document.querySelector("#messages .assistant .reasoning:not([open]):not([hidden])") !== null'),
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
    check('Esc stops the answer; the server sees it', p.server.gone.wait(120))
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
    p.fresh()
    gate = threading.Event()
    p.server.answers.put(says(gate, 'Too late.'))
    p.write('Unanswered')
    p.wait('app.running && store.get(app.talk.id).then((x) => x !== undefined)')
    p.call('Page.reload')
    p.wait('typeof app === "object" && app.adapters.length > 0')
    gate.set()
    check(
        'a question whose answer was still waited for stays',
        p.text() == 'Unanswered' and p.eval('branch(app.talk).length') == 1,
        p.text(),
    )
    p.fresh()
    p.write('Of a new one', send=False)
    p.call('Page.reload')
    p.wait('typeof app === "object" && app.adapters.length > 0')
    check('… that of a conversation too that has not begun', p.eval('app.fresh(), $("input").value') == 'Of a new one')
    p.eval('remember("draft", null); $("input").value = app.talk.draft = ""')
    other = Person(p.browser, p.server, p.folder)
    other.chat('In another tab', says('Seen?'))
    p.wait('app.talks.some((x) => x.title === "In another tab" && Object.values(x.nodes).length === 2)')
    other.call('Page.close')
    check('what another tab does is seen here', True)
    p.call('Page.bringToFront')
    p.eval('app.open(app.talks.find((x) => x.title === "Another question"))')
    before += 2
    p.eval('$("search").value = "line ONE"; $("search").dispatchEvent(new Event("input"))')
    check(
        'the search finds words of messages',
        p.eval('[...document.querySelectorAll("#talks button")].map((b) => b.textContent)') == ['Line one'],
    )
    p.eval('$("search").value = $("input").value = app.talk.draft = ""; $("search").dispatchEvent(new Event("input"))')
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

    def put(label, value):
        p.eval('probe.setting(%s).value = %s' % (js(label), js(value)))

    p.click('#open-settings')
    hint = p.eval('probe.setting("Temperature").parentElement.textContent')
    check('the server’s default and the limits are shown', 'default 0.8; 0 to 5' in hint, hint)
    put('Temperature', '7')
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
        ('System prompt', 'Be brief. "@seed@"'),
        ('Stop strings, one a line', 'END\nSTOP'),
        ('Thinking', 'none'),
        ('JSON schema of the answer', '{"type":"object"}'),
    ):
        put(name, value)
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
    actions = '[...document.querySelectorAll("#notice-actions button")].map((b) => b.textContent).join()'
    check('… and can go on', p.eval(actions) == 'Continue,Close', p.eval(actions))
    call = {'index': 0, 'id': 'c', 'type': 'function', 'function': {'name': 'look', 'arguments': '{"ci'}}
    gate = threading.Event()
    p.server.answers.put(breaks_off('Let me look.', {'tool_calls': [call]}, gate))
    p.button(-1, 'Again')
    p.wait('app.running && app.running.node.calls')
    gate.set()
    p.wait('!app.running && !$("notice").hidden')
    check('one lost within a call is asked again, not continued', p.eval(actions) == 'Try again,Close', p.eval(actions))
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
    p.eval(
        'store.ask = async (mode) => { if (mode === "readwrite") throw new DOMException("", "QuotaExceededError"); }'
    )
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


def files(p):
    folder, hone = p.folder, os.environ.get('HONE')
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
    p.eval('Object.assign(app.talk.settings, { seed: "9223372036854775807", temperature: 0.5, system: "S\\u202e" })')
    p.chat('And?', says({'reasoning_content': 'Hm.'}, 'More "words" \\ 🙂.'))
    text = p.eval('exportTalk(app.talk)')
    exported = os.path.join(folder, 'talk.json')
    with open(exported, 'w', encoding='utf-8') as f:
        f.write(text)
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
    p.browser.call('Browser.setDownloadBehavior', behavior='allow', downloadPath=folder)
    p.click('#export')
    p.until(lambda: os.path.exists(os.path.join(folder, 'notes-txt.json')))
    check('a click on Export saves a file of that', True)
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
