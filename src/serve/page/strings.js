/* strings: every word that the page says, in English and German, and which of the two is spoken.
 * In a text, {name} stands for a value. */
const LANGUAGES = ['en', 'de'];

const STRINGS = {
  skip: ['To the message field', 'Zum Eingabefeld'],
  conversations: ['Conversations', 'Gespräche'],
  settings: ['Settings', 'Einstellungen'],
  newTalk: ['New conversation', 'Neues Gespräch'],
  untitled: ['New conversation', 'Neues Gespräch'],
  search: ['Search', 'Suchen'],
  nothingFound: ['Nothing found', 'Nichts gefunden'],
  noTalks: ['No conversations yet', 'Noch keine Gespräche'],
  exportAll: ['Export all', 'Alle exportieren'],
  import: ['Import', 'Importieren'],
  imported: ['Imported: {n}', 'Importiert: {n}'],
  badImport: ['{name} was not imported: {why}', '{name} wurde nicht importiert: {why}'],
  messages: ['Messages', 'Nachrichten'],
  rename: ['Rename', 'Umbenennen'],
  renameTo: ['Name of this conversation', 'Name dieses Gesprächs'],
  export: ['Export', 'Exportieren'],
  deleteTalk: ['Delete conversation', 'Gespräch löschen'],
  deletedTalk: ['“{title}” was deleted.', '„{title}“ wurde gelöscht.'],
  deletedElsewhere: ['“{title}” was deleted in another tab.', '„{title}“ wurde in einem anderen Tab gelöscht.'],
  deleted: ['Deleted: the message and what followed it.', 'Gelöscht: die Nachricht und was ihr folgte.'],
  undo: ['Undo', 'Rückgängig'],
  close: ['Close', 'Schließen'],
  cancel: ['Cancel', 'Abbrechen'],
  ok: ['OK', 'OK'],
  welcome: [
    'Write a message below. Conversations are kept in this browser and nowhere else.',
    'Unten eine Nachricht schreiben. Gespräche bleiben in diesem Browser und nirgends sonst.'
  ],
  attached: ['Attached files', 'Angehängte Dateien'],
  attach: ['Attach text', 'Text anhängen'],
  detach: ['Remove {name}', '{name} entfernen'],
  notText:
    ['{name} is not text in UTF-8 and was not attached.', '{name} ist kein Text in UTF-8 und wurde nicht angehängt.'],
  tooLarge:
    ['{name} is larger than {most} and was not attached.', '{name} ist größer als {most} und wurde nicht angehängt.'],
  yourMessage: ['Your message', 'Ihre Nachricht'],
  hint: [
    'Enter sends, Shift+Enter begins a new line, Esc stops the answer, ↑ in an empty field edits the last message.',
    'Enter sendet, Umschalt+Enter beginnt eine Zeile, Esc hält an, ↑ im leeren Feld ändert die letzte Nachricht.'
  ],
  send: ['Send', 'Senden'],
  stop: ['Stop', 'Anhalten'],
  you: ['You', 'Sie'],
  answer: ['Answer', 'Antwort'],
  toolResult: ['Result of {name}', 'Ergebnis von {name}'],
  copy: ['Copy', 'Kopieren'],
  copied: ['Copied.', 'Kopiert.'],
  notCopied: ['The browser did not allow copying.', 'Der Browser hat das Kopieren nicht erlaubt.'],
  edit: ['Edit', 'Ändern'],
  save: ['Save', 'Sichern'],
  saveSend: ['Save and ask', 'Sichern und fragen'],
  again: ['Again', 'Noch einmal'],
  continue: ['Continue', 'Fortsetzen'],
  delete: ['Delete', 'Löschen'],
  tokens: ['Tokens', 'Token'],
  text: ['Text', 'Text'],
  branchOf: ['Version {i} of {n}', 'Fassung {i} von {n}'],
  previous: ['Previous version', 'Vorige Fassung'],
  next: ['Next version', 'Nächste Fassung'],
  reasoning: ['Reasoning', 'Überlegung'],
  reasoningNow: ['Reasoning, {s} s so far', 'Überlegt seit {s} s'],
  reasoningDone: ['Reasoned for {s} s', 'Überlegte {s} s'],
  call: ['Call of {name}', 'Aufruf von {name}'],
  result: ['Result of {name}, pasted by you', 'Ergebnis von {name}, von Ihnen eingefügt'],
  sendResults: ['Send results', 'Ergebnisse senden'],
  waiting: ['Waiting for the server', 'Warte auf den Server'],
  reading: ['Reading the prompt: {done} of {total} tokens', 'Liest die Eingabe: {done} von {total} Token'],
  rate: ['{rate} tok/s', '{rate} Tok/s'],
  rateRoof: [
    '{rate} tok/s, {percent} % of what this machine’s memory allows ({roof})',
    '{rate} Tok/s, {percent} % dessen, was der Speicher dieser Maschine erlaubt ({roof})'
  ],
  nTokens: ['{n} tokens', '{n} Token'],
  ttft: ['first after {ms} ms', 'erstes nach {ms} ms'],
  cached: ['{n} of {of} prompt tokens from the cache', '{n} von {of} Token der Eingabe aus dem Zwischenspeicher'],
  drafts: ['{n} of {of} drafted tokens accepted', '{n} von {of} vorgeschlagenen Token angenommen'],
  seed: ['Seed', 'Startwert'],
  seedIs: ['seed {seed}', 'Startwert {seed}'],
  copyHash: ['SHA-256 {hash} of the text: copy', 'SHA-256 {hash} des Textes: kopieren'],
  endStop: ['complete', 'vollständig'],
  endLength: ['cut at the token limit', 'am Tokenlimit abgeschnitten'],
  endCalls: ['asks for tools', 'verlangt Werkzeuge'],
  endStopped: ['stopped by you', 'von Ihnen angehalten'],
  endLost: ['broken off: the connection was lost', 'abgebrochen: die Verbindung ging verloren'],
  endError: ['broken off by an error', 'durch einen Fehler abgebrochen'],
  used: ['{n} of {of} tokens of context', '{n} von {of} Token des Kontexts'],
  usedWarn: ['{n} of {of} tokens of context: nearly full', '{n} von {of} Token des Kontexts: fast voll'],
  unreachable: [
    'The server cannot be reached. Trying again in {s} s.', 'Der Server ist nicht erreichbar. Neuer Versuch in {s} s.'
  ],
  lost: [
    'The connection was lost in the middle of the answer. What came is kept.',
    'Die Verbindung ging mitten in der Antwort verloren. Was kam, bleibt.'
  ],
  busy: [
    'The server’s queue is full. Asking again in {s} s.',
    'Die Warteschlange des Servers ist voll. Neue Anfrage in {s} s.'
  ],
  notReady: [
    'The server is loading or stopping. Asking again in {s} s.',
    'Der Server lädt oder beendet sich. Neue Anfrage in {s} s.'
  ],
  refused: ['The server refused: {why}', 'Der Server lehnt ab: {why}'],
  failed: ['The server failed: {why}', 'Fehler im Server: {why}'],
  pageFailed: ['The page failed: {why}', 'Fehler der Seite: {why}'],
  tooLong: [
    'The conversation does not fit: {n} tokens, and the model holds {of}. Shorten it, or begin a new one.',
    'Das Gespräch passt nicht: {n} Token, das Modell fasst {of}. Kürzen Sie es oder beginnen Sie ein neues.'
  ],
  retry: ['Try again', 'Erneut versuchen'],
  keyTitle: ['This server asks for a key', 'Dieser Server verlangt einen Schlüssel'],
  keyAgain: ['The server refused this key.', 'Der Server hat diesen Schlüssel abgelehnt.'],
  keyBad: ['Expected ASCII letters, digits and signs.', 'ASCII-Buchstaben, -Ziffern und -Zeichen erwartet.'],
  keyField: ['API key, kept until this tab is closed', 'API-Schlüssel, bleibt bis dieser Tab geschlossen wird'],
  storeFailed: [
    'This browser does not keep conversations ({why}). Export what you need.',
    'Dieser Browser bewahrt Gespräche nicht auf ({why}). Exportieren Sie, was Sie brauchen.'
  ],
  storeFull: [
    'The browser’s storage is full: the last change was not kept. Export and delete conversations.',
    'Der Speicher des Browsers ist voll: die letzte Änderung ist nicht gesichert. Gespräche exportieren und löschen.'
  ],
  storage: ['Storage used: {used} of {quota}', 'Speicher belegt: {used} von {quota}'],
  language: ['Language', 'Sprache'],
  theme: ['Colours', 'Farben'],
  themeAuto: ['as the system', 'wie das System'],
  themeLight: ['light', 'hell'],
  themeDark: ['dark', 'dunkel'],
  modelName: ['Model', 'Modell'],
  adapterScale: ['Adapter {name}: scale', 'Adapter {name}: Stärke'],
  system: ['System prompt', 'Systemanweisung'],
  sampling: ['Sampling', 'Auswahl der Token'],
  limits: ['{min} to {max}', '{min} bis {max}'],
  defaultIs: ['default {value}', 'Vorgabe {value}'],
  temperature: ['Temperature', 'Temperatur'],
  top_k: ['Top k', 'Top k'],
  top_p: ['Top p', 'Top p'],
  min_p: ['Min p', 'Min p'],
  repeat_penalty: ['Repeat penalty', 'Wiederholungsstrafe'],
  repeat_last_n: ['Repeat penalty: last tokens', 'Wiederholungsstrafe: letzte Token'],
  presence_penalty: ['Presence penalty', 'Anwesenheitsstrafe'],
  frequency_penalty: ['Frequency penalty', 'Häufigkeitsstrafe'],
  max_tokens: ['Most tokens of an answer', 'Höchstens so viele Token'],
  maxHint: ['empty: what the context holds', 'leer: was der Kontext fasst'],
  seedHint: ['whole number; empty: a new one for each answer', 'ganze Zahl; leer: für jede Antwort ein neuer'],
  stops: ['Stop strings, one a line', 'Stopptexte, einer je Zeile'],
  effort: ['Thinking', 'Nachdenken'],
  effortDefault: ['as the model does', 'wie das Modell'],
  effortNone: ['off', 'aus'],
  schema: ['JSON schema of the answer', 'JSON-Schema der Antwort'],
  tools: ['Tools, a JSON array', 'Werkzeuge, ein JSON-Array'],
  toolsHint: [
    'Functions as the API takes them. You run them yourself and paste what they return.',
    'Funktionen in der Form der API. Sie führen sie selbst aus und fügen das Ergebnis ein.'
  ],
  logprobs: ['Keep probabilities of tokens', 'Wahrscheinlichkeiten der Token behalten'],
  badJson: ['{name}: not JSON: {why}', '{name}: kein JSON: {why}'],
  notArray: ['{name}: expected a JSON array', '{name}: ein JSON-Array erwartet'],
  notObject: ['{name}: expected a JSON object', '{name}: ein JSON-Objekt erwartet'],
  notWhole: ['{name}: {value} is not a whole number', '{name}: {value} ist keine ganze Zahl'],
  badNumber: ['{name}: {value} is not within {min} to {max}', '{name}: {value} liegt nicht zwischen {min} und {max}'],
  badSeed: ['Seed: expected a whole number from 0 to 2⁶⁴−1', 'Startwert: eine ganze Zahl von 0 bis 2⁶⁴−1 erwartet'],
  image: ['image: {alt}', 'Bild: {alt}'],
  unseen: ['invisible character {code}', 'unsichtbares Zeichen {code}'],
  code: ['Code', 'Code'],
  tokenView: [
    'Tokens with their probabilities in percent; arrow keys move',
    'Token mit Wahrscheinlichkeiten in Prozent; Pfeiltasten bewegen'
  ],
  alternatives: ['Instead of {token} ({p} %):', 'Statt {token} ({p} %):'],
};

let language = 0;

/* Text of key in the language spoken; values replace {name}. */
function t(key, values) {
  let text = STRINGS[key][language];
  for (const name in values) text = text.replaceAll('{' + name + '}', () => values[name]);
  return text;
}

function chooseLanguage(name) {
  language = Math.max(0, LANGUAGES.indexOf(name));
  document.documentElement.lang = LANGUAGES[language];
  for (const e of document.querySelectorAll('[data-t]')) e.textContent = t(e.dataset.t);
  for (const e of document.querySelectorAll('[data-t-label]')) e.setAttribute('aria-label', t(e.dataset.tLabel));
  for (const e of document.querySelectorAll('[data-t-placeholder]')) e.placeholder = t(e.dataset.tPlaceholder);
}

/* A number as people of that language write it. */
function number(x, digits) {
  return x.toLocaleString(LANGUAGES[language], { maximumFractionDigits: digits || 0 });
}

function bytes(n) {
  return n < 1e6 ? number(n / 1e3, 1) + ' kB' : number(n / 1e6, 1) + ' MB';
}
