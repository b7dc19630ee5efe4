"""Two tabs with one conversation, deletions, seeds of answers that are gone on with, and what is asked while somebody
writes."""

import threading
import time

from page_person import Person, check, js
from page_server import goes_on, refuses, says

KEPT = (
    '(window.kept = null, store.all().then((all) => { window.kept = Object.fromEntries(all.map((x) => '
    '[x.title, Object.values(x.nodes).map((n) => n.content)])); }), true)'
)


def kept(p):
    """What the browser keeps: {title: contents}."""
    p.eval(KEPT)
    p.wait('window.kept !== null')  # none at all is no reason to wait
    return p.eval('window.kept')


def settled(p):
    """All that was written before is in the database, and what other tabs were told has come."""
    for _ in range(3):
        kept(p)
        p.eval('new Promise((done) => setTimeout(done, 50)).then(() => true)')
    time.sleep(0.3)


# While this tab reads what there is, another one writes the conversation of that id and says so: what is read is what
# was there before.
WRITTEN_MEANWHILE = '''
IDBObjectStore.prototype.getAll = function () {
  const request = this.get('nothing');
  Object.defineProperty(request, 'result', { value: [] });
  new BroadcastChannel('hone').postMessage(%s);
  const end = Date.now() + 300;
  const wait = () => { if (Date.now() < end) this.get('nothing').onsuccess = wait; };
  wait();
  return request;
};
'''


def other_tab(p, title, before=None):
    other = Person(p.browser, p.server, p.folder, before)
    other.wait('app.talks.some((x) => x.title === %s)' % js(title))
    other.eval('app.open(app.talks.find((x) => x.title === %s))' % js(title))
    return other


def shown(p):
    return p.eval('branch(app.talk).map((n) => n.content)')


def deleted_while_asked(p):
    p.fresh()
    p.server.answers.put(goes_on('part of an answer'))
    p.write('Delete me')
    p.wait('app.running && app.running.node.content')
    p.click('#delete-talk')
    p.wait('!app.running && !$("notice").hidden')
    settled(p)
    check(
        'a conversation deleted while an answer is coming stays deleted',
        'Delete me' not in kept(p) and not p.eval('app.talks.some((x) => x.title === "Delete me")'),
        kept(p),
    )
    p.click('#notice-actions button')
    settled(p)
    check('… and comes back by Undo alone', 'Delete me' in kept(p) and p.eval('app.talk.title') == 'Delete me', kept(p))
    p.click('#delete-talk')
    p.wait('!$("notice").hidden')


def deleted_slowly(p):
    p.fresh()
    p.chat('Stays', says('Yes'))
    p.fresh()
    p.chat('Goes slowly', says('No'))
    p.eval(
        '{ const remove = store.remove; store.remove = async (id) => { store.remove = remove; '
        'await new Promise((done) => setTimeout(done, 300)); return remove.call(store, id); }; }'
    )
    p.click('#delete-talk')
    p.eval('app.open(app.talks.find((x) => x.title === "Stays"))')
    p.wait('!$("notice").hidden')
    check(
        'who opens another conversation while one is being deleted stays there',
        p.eval('app.talk.title') == 'Stays' and 'Goes slowly' not in kept(p),
        p.eval('app.talk.title'),
    )


def written_while_a_tab_opens(p):
    p.fresh()
    p.chat('Written meanwhile', says('Yes'))
    settled(p)
    other = other_tab(p, 'Written meanwhile', WRITTEN_MEANWHILE % p.eval('JSON.stringify(app.talk.id)'))
    check('what a tab writes while another opens is there, too', shown(other) == ['Written meanwhile', 'Yes'])
    other.call('Page.close')
    p.call('Page.bringToFront')


def deleted_in_another_tab(p):
    p.fresh()
    p.chat('Of two tabs', says('Yes'))
    other = other_tab(p, 'Of two tabs')
    other.write('being written', send=False)
    p.call('Page.bringToFront')
    p.click('#delete-talk')
    other.wait('!app.talks.some((x) => x.title === "Of two tabs")')
    check(
        'what one tab deletes goes from the others, with a word',
        'was deleted in another tab' in other.notice() and shown(other) == [],
        other.notice(),
    )
    other.call('Page.bringToFront')
    other.eval('$("input").focus()')
    other.type(' on')
    time.sleep(0.8)
    check(
        '… who write in it do not bring it back, and lose no word',
        'Of two tabs' not in kept(other) and other.eval('$("input").value') == 'being written on',
        [kept(other), other.eval('$("input").value')],
    )
    p.call('Page.bringToFront')
    p.click('#notice-actions button')
    other.wait('app.talks.some((x) => x.title === "Of two tabs")')
    check('… an Undo is seen there, too', kept(other).get('Of two tabs') == ['Of two tabs', 'Yes'], kept(other))

    # one that was not told of it: the database itself says so
    other.eval('app.open(app.talks.find((x) => x.title === "Of two tabs")); app.gone = () => {}')
    p.click('#delete-talk')
    p.wait('!$("notice").hidden')
    other.eval('app.keep(app.talk)')
    settled(other)
    check('… nor does a tab that was not told', 'Of two tabs' not in kept(other), kept(other))
    other.eval('remember("draft", null)')
    p.wait('!recall("draft")')  # a browser's tabs hear of that one after the other: else the next talk begins with it
    other.call('Page.close')
    p.call('Page.bringToFront')


def edits_stay(p):
    p.fresh()
    p.chat('Shared', says('Yes'))
    other = other_tab(p, 'Shared')
    other.eval('app.files.push({ name: "notes.txt", text: "abc" }); drawFiles(); $("input").value = "half a line"')
    other.button(0, 'Edit')
    other.eval('document.activeElement.value = "half an hour of rewriting"')
    p.call('Page.bringToFront')
    p.chat('Another question', says('No'))
    other.wait('branch(app.talk).length === 4 && $("messages").children.length === 4')
    area = '(document.querySelector("#messages textarea") || {}).value'
    seen = [other.eval(x) for x in (area, 'app.files.length', '$("input").value')]
    check(
        'what another tab adds is shown, and an edit, files and a draft stay',
        seen == ['half an hour of rewriting', 1, 'half a line'] and other.text() == 'No',
        seen,
    )
    p.button(0, 'Delete')
    settled(p)
    # whatever is written of the conversation meanwhile: what was deleted does not come back by it
    other.eval('$("input").value = "a line"; app.draft(app.talk, "a line"); app.keepDraft()')
    settled(other)
    check('… also an edit of what another tab deletes', other.eval(area) == 'half an hour of rewriting', shown(other))
    other.call('Page.bringToFront')
    other.server.answers.put(says('To the edit'))
    other.button(0, 'Save and ask')
    other.wait('!app.running && branch(app.talk).at(-1).content === "To the edit"')
    settled(p)
    check(
        '… which is saved as ever',
        kept(p)['half an hour of rewriting'] == ['half an hour of rewriting', 'To the edit'],
        kept(p),
    )
    p.eval('app.open(app.talks.find((x) => x.title === "half an hour of rewriting"))')
    check('… and comes to the other tab', shown(p) == ['half an hour of rewriting', 'To the edit'], shown(p))
    other.call('Page.close')
    p.call('Page.bringToFront')


def both_ask(p):
    gate = threading.Event()
    p.fresh()
    p.chat('Both ask', says('One'))
    other = other_tab(p, 'Both ask')
    p.call('Page.bringToFront')
    p.server.answers.put(says('begun ', gate, 'ended'))
    p.write('Of the first tab')
    p.wait('app.running && app.running.node.content')
    other.call('Page.bringToFront')
    p.server.answers.put(says('Two'))
    other.button(1, 'Again')
    other.wait('!app.running && branch(app.talk)[1].content === "Two"')
    settled(other)
    gate.set()
    p.call('Page.bringToFront')
    p.wait('!app.running')
    settled(p)
    all_of_it = sorted(['Both ask', 'One', 'Two', 'Of the first tab', 'begun ended'])
    check('two tabs ask at once, and nothing is lost', sorted(kept(p)['Both ask']) == all_of_it, kept(p))
    check('… the first still shows its own', shown(p) == ['Both ask', 'One', 'Of the first tab', 'begun ended'])
    check('… with the other version beside it', '1/2' in p.eval('$("messages").children[1].innerText'))
    other.wait('Object.keys(app.talk.nodes).length === 5')
    check('… and so does the second', shown(other) == ['Both ask', 'Two'], shown(other))

    p.button(-1, 'Delete')
    other.wait('Object.keys(app.talk.nodes).length === 4')
    other.eval('app.keep(app.talk)')
    settled(other)
    check('a deleted message comes back from no other tab', 'begun ended' not in kept(p)['Both ask'], kept(p))
    p.click('#notice-actions button')
    other.wait('Object.keys(app.talk.nodes).length === 5')
    other.eval('app.keep(app.talk)')
    settled(other)
    check('… but by Undo', sorted(kept(p)['Both ask']) == all_of_it, kept(p))

    other.eval('Object.assign(app.talk.settings, { temperature: 0.25 }); app.talk.set = Date.now(); app.keep(app.talk)')
    p.wait('app.talk.settings.temperature === 0.25')
    check('settings are those of the tab that set them last', True)
    other.call('Page.close')
    p.call('Page.bringToFront')


def seeds(p):
    node = 'branch(app.talk)[1]'
    about = 'JSON.stringify([%s.end, %s.stats, %s.hash])' % (node, node, node)
    p.fresh()
    p.chat('Question', says('An answer', end='length', seed=b'11'))
    before, figures = p.eval(about), p.figures()
    p.server.answers.put(refuses(400, message='no'))
    p.button(-1, 'Continue')
    p.wait('!app.running && !$("notice").hidden')
    check('going on, refused: seed and hash are still those of the answer', p.eval(about) == before, p.eval(about))
    check('… and shown so', p.figures() == figures and 'seed 11 · SHA-256' in figures, p.figures())
    p.server.answers.put(says('', seed=b'12', end='length'))
    p.button(-1, 'Continue')
    p.idle()
    check('… also where nothing was added', p.figures() == figures, p.figures())
    p.server.answers.put(says(' and more', seed=b'13'))
    p.button(-1, 'Continue')
    p.idle()
    check(
        'an answer that was gone on with tells the seeds of its parts, and no hash that one of them makes',
        p.figures().endswith('seed 11, 13'),
        p.figures(),
    )
    p.server.answers.put(says(' and more', seed=b'14'))
    p.button(-1, 'Continue')
    p.idle()
    check('… of each', p.figures().endswith('seed 11, 13, 14'), p.figures())


def counting(p):
    """What is being written is counted by the model that is chosen, and loads none."""
    s = p.server
    of = lambda path: [b for method, where, b in s.seen if where == path]
    p.fresh()
    s.models = {'object': 'list', 'data': [{'id': 'test-model'}, {'id': 'second'}]}
    s.props = dict(s.props, is_sleeping=True)
    p.call('Page.reload')
    p.wait('typeof app === "object" && app.models.length === 2 && app.props')
    p.eval('app.fresh(); app.talk.settings = { model: "second" }')
    n = len(of('/tokenize'))
    asked = len(of('/props?model=second'))
    p.write('three words here', send=False)
    p.until(lambda: len(of('/props?model=second')) > asked)
    time.sleep(0.5)
    check('a draft is not counted by a model that is not loaded', len(of('/tokenize')) == n, of('/tokenize')[n:])
    s.props = {k: v for k, v in s.props.items() if k != 'is_sleeping'}
    p.type(' now')
    p.until(lambda: len(of('/tokenize')) > n)
    check(
        '… by the chosen one where it is',
        of('/tokenize')[-1] == {'model': 'second', 'content': 'three words here now'},
        of('/tokenize')[-1],
    )
    s.models = {'object': 'list', 'data': [{'id': 'test-model', 'object': 'model'}]}
    p.eval('$("input").value = app.talk.draft = ""; remember("draft", null)')
    p.call('Page.reload')
    p.wait('typeof app === "object" && app.models.length === 1 && app.props && !$("context").hidden')
