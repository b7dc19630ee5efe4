"""What must not be lost at the page: undo, drafts, edits, files, settings, the digits of numbers; and what it says must be so."""

import json
import os
import threading
import time

from page_person import check, js
from page_server import event, refuses, says
from page_tabs import other_tab, settled

WIDE = '12345678901234567890'


def taken(p, path, text):
    """Imports a file of that text, named so."""
    where = os.path.join(p.folder, path)
    with open(where, 'w', encoding='utf-8') as f:
        f.write(text)
    found = p.call('Runtime.evaluate', expression='document.querySelector("#import-file")')['result']['objectId']
    p.call('DOM.setFileInputFiles', files=[where], objectId=found)
    p.wait('!$("notice").hidden')


def undo(p):
    p.fresh()
    p.chat('Keep me', says('Yes'))
    p.server.answers.put(refuses(503, [('Retry-After', '2')], message='loading'))
    p.eval('patiently(() => ask("v1/chat/completions", "{}")).catch(() => {}), true')
    p.wait('$("notice-text").textContent.includes("Asking again in")')
    live = p.eval('(document.querySelector("#notice-text [role=timer]") || {}).textContent')
    check('the seconds of a countdown change in a timer, which is not announced', live in ('1', '2'), live)
    p.button(-1, 'Delete')
    time.sleep(2.5)  # two ticks and the end
    seen = p.eval('[$("notice-text").textContent, $("notice-actions").innerText]')
    check('a countdown leaves a notice with Undo alone', seen[0].startswith('Deleted: ') and 'Undo' in seen[1], seen)
    p.eval('notice("")')


def imports(p):
    p.fresh()
    p.chat('@seed@', says({'content': '@seed@'}))
    talk = json.loads(p.eval('exportTalk(app.talk).replace(/: undefined/g, ": null")'))
    check('a message may be "@seed@"', [m['content'] for m in talk['messages']] == ['@seed@'] * 2, talk['messages'])
    p.eval('app.talk.settings.seed = "18446744073709551615"')
    seen = p.eval('exportTalk(app.talk).includes("undefined") || exportTalk(app.talk).includes("content\\": 1844")')
    check('… also beside a seed that hone chat does not take', not seen)
    p.eval(
        'Object.assign(app.talk.settings, { lora: { 0: 0.5 }, logprobs: true });'
        'branch(app.talk)[1].logprobs = [["a", -0.5, [["a", -0.5], ["b", -1]]]]'
    )
    taken(p, 'talk.json', p.eval('exportTalk(app.talk)'))
    seen = p.eval('[app.talk.settings.lora, app.talk.settings.logprobs, branch(app.talk)[1].logprobs]')
    wanted = [{'0': 0.5}, True, [['a', -0.5, [['a', -0.5], ['b', -1]]]]]
    check('adapters, probabilities and their setting come back from a file', seen == wanted, seen)
    p.eval('window.had = app.adapters, app.adapters = [], notice("")')
    p.click('#open-settings')
    p.click('#settings button[type=submit]')
    check('… and stay when the server has told of no adapter', p.eval('app.talk.settings.lora') == {'0': 0.5})
    p.eval('app.adapters = window.had')
    p.eval('branch(app.talk)[1].stats.prompt = "x"')
    taken(p, 'bad.json', p.eval('exportTalk(app.talk)'))
    check('figures of a file are numbers', p.eval('branch(app.talk)[1].stats.prompt === undefined'), p.notice())
    p.eval(
        'window.whole = store.ask; store.ask = async (mode, make) => '
        '{ if (mode === "readwrite") throw new DOMException("", "QuotaExceededError"); return whole.call(store, mode, make); }'
    )
    taken(p, 'bad.json', p.eval('notice(""), exportTalk(newTalk({}))'))
    time.sleep(0.5)
    p.eval('store.ask = whole, true')
    check('an import that does not fit is not told as kept', 'Imported: 0. The browser’s' in p.notice(), p.notice())
    p.eval('notice("")')


def drafts(p):
    p.fresh()
    p.chat('Another one', says('Yes'))
    p.fresh()
    p.chat('Drafts', says('Yes'))
    p.write('written here', send=False)
    p.eval(
        'window.was = app.talk; app.open(app.talks.find((x) => x !== was)); $("input").value = "of the next";'
        '$("input").dispatchEvent(new Event("input"))'
    )
    settled(p)
    p.eval('$("input").value = ""; $("input").dispatchEvent(new Event("input")); app.fresh()')
    settled(p)
    stored = (
        '(window.seen = null, store.get(app.talks.find((x) => x.title === "Drafts").id).then((x) => { seen = x.draft }), 1)'
    )

    def kept():
        p.eval(stored)
        p.wait('seen !== null')
        return p.eval('seen')

    check('a draft is kept when another conversation is opened', kept() == 'written here', kept())
    p.eval('app.open(was)')
    p.eval('$("input").focus()')
    other = other_tab(p, 'Drafts')
    p.call('Page.bringToFront')
    p.type(' and more')
    settled(p)
    other.call('Page.bringToFront')
    other.eval('app.talk.draft = ""; app.keep(app.talk), true')  # a tab that knows an older draft
    settled(p)
    text = 'written here and more'
    check('no other tab erases a draft', kept() == text and p.eval('app.talk.draft') == text, kept())
    other.chat('Of the other', says('Yes'))
    settled(p)
    time.sleep(0.8)
    check('… not by what it sends', kept() == text and p.eval('$("input").value') == text, kept())
    other.call('Page.close')
    p.call('Page.bringToFront')
    p.eval('$("input").focus()')
    p.type('!')
    p.call('Page.reload')
    p.wait('typeof app === "object" && app.adapters.length > 0')
    seen = p.eval('$("input").value')
    check('… and what was typed last is there after a reload', seen == text + '!', seen)
    p.eval('$("input").focus()')
    p.type('?')
    p.eval(  # a write that does not end before its page does: what waits behind it is lost
        'window.before = 1; window.busy = store.db.transaction("talks", "readwrite").objectStore("talks");'
        '(function on() { busy.get("").onsuccess = on })(); location.reload()'
    )
    p.wait('!window.before && typeof app === "object" && app.adapters.length > 0')
    seen = p.eval('$("input").value')
    settled(p)
    check('… behind a write that was under way, too', seen == text + '!?' and kept() == seen, seen)
    p.eval('$("input").focus()')
    p.type('.')
    p.eval(
        'window.before = 1; Storage.prototype.setItem = () => { throw new DOMException("", "QuotaExceededError") };'
        'location.reload()'
    )
    p.wait('!window.before && typeof app === "object" && app.adapters.length > 0')
    seen = p.eval('$("input").value')
    check('… where local storage is full, too', seen == text + '!?.', seen)
    p.eval('$("input").value = ""; app.talk.draft = ""; remember("draft", null)')


def edits(p):
    p.fresh()
    p.chat('Edit me', says({'content': 'Yes'}))
    p.button(0, 'Edit')
    p.eval('document.activeElement.value = "rewritten"')
    p.click('#open-settings')
    p.click('#settings button[type=submit]')
    area = '(document.querySelector("#messages textarea") || {}).value'
    check('saving the settings leaves an edit', p.eval(area) == 'rewritten', p.eval(area))
    p.eval('$("input").focus()')
    p.key('ArrowUp')
    seen = p.eval('[%s, document.activeElement.tagName + document.activeElement.id]' % area)
    check('… and arrow up goes to it', seen == ['rewritten', 'TEXTAREA'], seen)
    p.eval('app.files.push({ name: "notes.txt", text: "abc" }); drawFiles(); window.was = app.talk; app.fresh()')
    apart = p.eval('app.files.length')
    p.eval('app.open(was)')
    check('files wait for the conversation they were attached to', [apart, p.eval('app.files.length')] == [0, 1])
    p.eval('app.files = []; drawFiles()')


def figures(p):
    text = '{"n":%s,"n":1.0}' % WIDE
    p.fresh()
    p.eval('Object.assign(app.talk.settings, { tools: %s, schema: %s })' % (js('[%s]' % WIDE), js('{"a":%s}' % WIDE)))
    call = {'index': 0, 'id': 'c', 'type': 'function', 'function': {'name': 'f', 'arguments': text}}
    p.chat('Call', says({'tool_calls': [call]}, end='tool_calls'))
    seen = p.eval('document.querySelector("#messages .call pre").textContent')
    check('arguments of a call are shown as they are', seen == text, seen)
    b = p.server.chats()[-1]
    seen = [b['tools'], b['response_format']['json_schema']['schema']]
    check('tools and schema are sent as they were given', seen == [[WIDE], {'a': WIDE}], seen)
    p.fresh()
    p.click('#open-settings')
    p.eval('probe.setting("Top k").value = "2,000"')
    p.click('#settings button[type=submit]')
    seen = p.eval('document.querySelector("#settings .error").textContent')
    check('2,000 is not taken for 2', seen == 'Top k: 2,000 is not a whole number', seen)
    p.eval('$("settings").close()')
    p.chat('Rate', says({'content': 'Yes'}))
    own = p.figures()
    p.eval('app.props.path = "", propsPath = () => "props?model=x", meetModel()')
    p.wait('app.props.path === "props?model=x"')
    p.eval('app.props.model = "x"; for (const v of app.views.values()) v.drawFigures()')
    check('a rate is held against its own model alone', '%' in own and '%' not in p.figures(), [own, p.figures()])
    p.call('Page.reload')
    p.wait('typeof app === "object" && app.adapters.length > 0')
    p.eval(
        'window.gate = new Promise((f) => { window.go = f; }); window.real = ask;'
        'ask = (path) => path !== "props?model=slow" ? real(path)'
        ': gate.then(() => ({ json: async () => ({ n_ctx: 1 }) }));'
        'app.models.push({ id: "slow" }); app.talk.settings = { model: "slow" }; meetModel();'
        'app.talk.settings = {}; app.props.path = ""; meetModel().then(() => go())'
    )
    p.eval('gate.then(() => new Promise((f) => setTimeout(f, 50)))')
    check('a late answer about another model is dropped', p.eval('contextSize()') == 1000, p.eval('contextSize()'))
    p.eval('app.models.pop(); ask = real, true')


def keys(p):
    p.eval('sessionStorage.clear()')
    p.server.key = 'secret'
    p.fresh()
    p.server.answers.put(says('With a key.'))
    p.write('Who am I?')
    p.wait('$("ask").open')
    p.type('schlüs\u2026el')
    p.key('Enter')
    p.wait('$("ask").open && $("ask").textContent.includes("Expected ASCII")')
    p.type('secret')
    p.key('Enter')
    p.idle()
    check('a key that no header holds is asked for again', p.text() == 'With a key.', p.text())
    p.server.key = None
    p.eval('sessionStorage.clear()')


def page_fails(p):
    p.fresh()
    p.eval('app.talk.settings.tools = "{"')
    p.write('Fail')
    p.wait('!app.running && !$("notice").hidden')
    check('an error of the page is not told as the server’s', p.notice().startswith('The page failed: '), p.notice())
    p.eval('delete app.talk.settings.tools; notice("")')


def escape(p):
    p.fresh()
    gate = threading.Event()
    p.server.answers.put(says('Begun', gate, ' and ended'))
    p.write('Menu')
    p.wait('app.running && app.running.node.content')
    p.eval('$("side").classList.add("open")')
    p.key('Escape')
    seen = p.eval('[!!app.running && !app.running.controller.signal.aborted, $("side").className]')
    gate.set()
    p.wait('!app.running')
    check('Escape closes the menu, and stops no answer then', seen == [True, ''], seen)


def lists(p):
    p.fresh()
    p.chat('First', says('One'))
    p.chat('Second', says('Two'))
    p.eval('removeNode(app.talk, branch(app.talk)[0].id); app.draw()')
    check('a conversation without messages can be deleted', p.eval('!$("talk-actions").hidden'))
    p.eval('document.querySelector("#talks li:last-child button").focus(); drawList()')
    seen = p.eval('document.activeElement === document.querySelector("#talks li:last-child button")')
    check('the list leaves the focus where it is', seen)


def late(p):
    p.fresh()
    p.eval(
        'window.real = countTokens; countTokens = (text) => new Promise((done) => { text === "one" ? (window.late = () => done(500)) : done(3); });'
        '$("input").value = "one"; countDraft(); true'
    )
    p.wait('!!window.late')
    p.eval('$("input").value = "two"; countDraft(); setTimeout(late, 800), true')
    p.wait('draft_tokens === 3')
    time.sleep(1)
    check('a late count of a draft is dropped', p.eval('draft_tokens') == 3, p.eval('draft_tokens'))
    p.eval('countTokens = real; $("input").value = ""; countDraft()')


def counts(p):
    context = 'document.getElementById("used-text").textContent'
    progress = event({'prompt_progress': {'total': 40, 'processed': 40}, 'choices': []})
    gate = threading.Event()
    p.fresh()
    p.chat('First', says({'content': 'one'}, prompt=10, tokens=5))
    p.server.answers.put(says(progress, 'three words more', gate))
    p.write('Second')
    p.wait('app.running && app.running.node.content')
    p.click('#stop')
    p.wait('!app.running && branch(app.talk).at(-1).stats.tokens')
    gate.set()
    check('the context holds an answer that was stopped', p.eval(context).startswith('43 of'), p.eval(context))
    check('… which tells its tokens', '3 tokens' in p.figures(), p.figures())
    p.server.answers.put(says(' and on', prompt=43, tokens=2))
    p.button(-1, 'Continue')
    p.idle()
    seen = p.figures() + p.eval(context)
    check('an answer that was gone on with tells the tokens of all', '5 tokens' in seen and '45 of' in seen, seen)


def focus(p):
    gate = threading.Event()
    p.fresh()
    call = {'index': 0, 'id': 'c', 'type': 'function', 'function': {'name': 'f', 'arguments': '{}'}}
    p.chat('Call', says({'tool_calls': [call]}, end='tool_calls'))
    p.eval('document.querySelector("#messages .call textarea").focus()')
    p.type('half')
    p.eval('app.draw()')
    p.type(' a result')
    seen = p.eval('document.querySelector("#messages .call textarea").value')
    check('a result that somebody pastes keeps the focus', seen == 'half a result', seen)
    p.fresh()
    p.chat('First', says({'content': 'One'}))
    p.server.answers.put(says('Two', gate))
    p.write('Second')
    p.wait('app.running && app.running.node.content')
    p.eval('[...document.querySelectorAll("#messages > li")][0].querySelectorAll("button")[1].focus()')
    gate.set()
    p.wait('!app.running')
    seen = p.eval('document.activeElement.textContent')
    check('… and a button where an answer ends', seen == 'Edit', seen)
    other = '(() => { const n = branch(app.talk)[3]; delete n.end; n.changed = Date.now() - %d; app.draw(); })()'
    p.eval(other % 1000)
    soon = p.figures()
    p.eval(other % 60000)
    seen = [('lost' in x) for x in (soon, p.figures())]
    check('an answer that another tab may be at is not told as broken off', seen == [False, True], [soon, p.figures()])


def copies(p):
    p.eval(
        'window.real = copyText; copyText = async (x) => { window.copied = x; return true; };'
        'window.root = document.createElement("div"); window.view = new MarkdownView(root);'
        'for (const x of ["```ma", "```make\\n", "```make\\nall:\\n", "```make\\nall:\\n\\tcc\\n"]) view.update(x, false);'
        'root.querySelector("button").click()'
    )
    seen = p.eval('[root.querySelector("span").textContent, window.copied]')
    check('code that is still coming is copied as it stands, tabs as well', seen == ['make', 'all:\n\tcc\n'], seen)
    p.eval('view.update("```make\\nall:\\n\\tcc\\n```", true); root.querySelector("button").click()')
    check('… and at its end', p.eval('window.copied') == 'all:\n\tcc', p.eval('window.copied'))
    p.eval('copyText = real, true')


def broken(p):
    try:
        seen = p.eval('probe.markdown("-".repeat(2500000)).textContent.length')
    except RuntimeError as e:
        seen = str(e)
    check('a line of 2.5 million dashes is shown', seen == 2500000, seen)
    p.eval(
        '(window.bad = newTalk({}), addNode(bad, "", { role: "user", content: "x" }).content = null,'
        'store.put(bad), remember("open", bad.id), true)'
    )
    settled(p)
    p.call('Page.reload')
    p.wait('typeof app === "object" && document.readyState === "complete" && app.talk')
    time.sleep(0.5)
    check('a conversation that cannot be shown keeps no page from starting', p.eval('app.props !== null'))
    p.eval('store.remove(bad = app.talks.find((x) => Object.values(x.nodes).some((n) => n.content === null)).id)')
    p.eval('app.talks = app.talks.filter((x) => x.id !== bad); drawList()')


SCENARIOS = [undo, imports, drafts, edits, figures, keys, page_fails, escape, lists, late, counts, focus, copies, broken]
