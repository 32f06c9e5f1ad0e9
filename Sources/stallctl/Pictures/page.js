// Draws the pictures of a page of stalls. Names come from programs of strangers: they are only ever set as textContent or as the
// value of an attribute that is text. Nothing is fetched; nothing is stored.
//
// It runs before the page's text is there, so that no group is laid out that is not shown; the data is read and pictures are drawn
// when the page has loaded.
"use strict";
(() => {
const root = document.documentElement;
root.classList.add("js", "early");
let data, perHour, unit;
const stillness = matchMedia("(prefers-reduced-motion: reduce)");
const ROW = 20;

// ---------------------------------------------------------------- small things
const svgSpace = "http://www.w3.org/2000/svg";
function make(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, value);
  node.append(...children);
  return node;
}
function draw(tag, attributes, text) {
  const node = document.createElementNS(svgSpace, tag);
  for (const name in attributes) node.setAttribute(name, attributes[name]);
  if (text !== undefined) node.textContent = text;
  return node;
}

function time(us) {
  const ms = us / 1000;
  if (ms === 0) return "0 ms";
  if (ms < 10) return ms.toFixed(1) + " ms";
  if (ms < 999.5) return ms.toFixed(0) + " ms";
  const s = ms / 1000;
  if (s < 59.995) return (s < 9.995 ? s.toFixed(2) : s.toFixed(1)) + " s";
  const minutes = Math.round(s) / 60;
  if (minutes < 60) return Math.floor(minutes) + "m " + String(Math.round(s) % 60).padStart(2, "0") + "s";
  return Math.floor(minutes / 60) + "h " + String(Math.floor(minutes) % 60).padStart(2, "0") + "m";
}
// Of stalls; those without durations come from other programs.
const lost = (us, count) => us || !count ? time(us) : "unknown time";
function signed(us) { return (us < 0 ? "−" : "+") + time(Math.abs(us)); }
function percent(share) { return (share * 100).toFixed(share < 0.0995 ? 1 : 0) + " %"; }
function counted(count, noun, plural = noun + "s") { return count + " " + (count === 1 ? noun : plural); }
// As much of it as there is room for; of a pair that is one character not the half.
function fit(text, width, letter = 6.7) {
  const most = Math.floor(width / letter);
  return most < 3 ? "" : text.length <= most ? text : text.slice(0, most - 1).replace(/[\ud800-\udbff]$/, "") + "…";
}
function moment(part) {
  const at = new Date((data.start + part * data.step) * 1000).toISOString();
  return data.unit === "day" ? at.slice(0, 10) : at.slice(0, 16).replace("T", " ");
}

// ---------------------------------------------------------------- trees of calls
// A node: name (its number), times (of each side), children, depth, parent.
function readTree(list) {
  const width = 2 + data.sides.length;
  const top = { name: -1, depth: -1, times: data.sides.map(() => 0), children: [], parent: null };
  let last = top;
  for (let i = 0; i < list.length; i += width) {
    const depth = list[i + 1];
    while (last.depth >= depth) last = last.parent;
    const node = { name: list[i], depth, times: list.slice(i + 2, i + width), children: [], parent: last };
    last.children.push(node);
    last = node;
  }
  top.times = data.sides.map((_, side) => top.children.reduce((sum, child) => sum + child.times[side], 0));
  return top;
}

function child(of, name) {
  of.index = of.index || new Map();
  let found = of.index.get(name);
  if (!found) {
    found = { name, depth: of.depth + 1, times: data.sides.map(() => 0), children: [], parent: of };
    of.index.set(name, found);
    of.children.push(found);
  }
  return found;
}

// The same times from the other end: each call's own time under its callers.
function invertTree(top) {
  const turned = { name: -1, depth: -1, times: top.times.slice(), children: [], parent: null };
  (function visit(node) {
    const own = node.times.map((value, side) => value - node.children.reduce((sum, c) => sum + c.times[side], 0));
    if (node.parent && own.some(value => value > 0)) {
      let at = turned;
      for (let from = node; from.parent; from = from.parent) {
        at = child(at, from.name);
        own.forEach((value, side) => { at.times[side] += Math.max(0, value); });
      }
    }
    node.children.forEach(visit);
  })(top);
  sortTree(turned);
  return turned;
}

function mergeTrees(trees) {
  const all = { name: -1, depth: -1, times: data.sides.map(() => 0), children: [], parent: null };
  function add(from, to) {
    from.times.forEach((value, side) => { to.times[side] += value; });
    for (const c of from.children) add(c, child(to, c.name));
  }
  for (const tree of trees) add(tree, all);
  sortTree(all);
  return all;
}

function sortTree(node) {
  const weight = n => n.times.reduce((sum, value) => sum + value, 0);
  node.children.sort((a, b) => weight(b) - weight(a) || a.name - b.name);
  node.children.forEach(sortTree);
}

// ---------------------------------------------------------------- flame graphs
// What a flame graph shows of a node: its width and its class.
const plainLook = side => ({
  value: node => node.times[side],
  kind: node => data.names[node.name][2],
  text: (node, whole) => time(node.times[side]) + ", " + percent(node.times[side] / (whole || 1)),
});
// Both sides at once: as wide as what both lost, coloured by what became of it; the number and its sign say the same.
const rates = node => node.times.map((value, side) => value * perHour[side]);
const differenceLook = {
  value: node => { const [a, b] = rates(node); return a + b; },
  kind: node => {
    const [a, b] = rates(node);
    const part = Math.abs(b - a) / (a + b || 1);
    if (part < 0.05) return "same";
    return (b > a ? "more" : "less") + (part < 0.25 ? " d1" : part < 0.6 ? " d2" : "");
  },
  label: node => { const [a, b] = rates(node); return signed(b - a) + " "; },
  text: node => { const [a, b] = rates(node); return time(a) + " → " + time(b) + unit + " (" + signed(b - a) + ")"; },
};

class Flame {
  constructor(place, title, tree, look, options = {}) {
    Object.assign(this, { tree, look, options, isInverted: false, query: "" });
    this.top = tree;
    this.zoomed = tree;
    const search = make("input", { type: "search", placeholder: "Search calls", "aria-label": "Search calls", spellcheck: "false" });
    const found = make("span", { class: "found", role: "status" });
    const invert = make("button", { type: "button", "aria-pressed": "false" }, "Inverted");
    const reset = make("button", { type: "button", disabled: "" }, "Zoom out");
    this.svg = draw("svg", { class: "flame", role: "tree", "aria-label": title });
    this.caption = make("figcaption");
    const tools = make("div", { class: "tools" }, make("h3", {}, title), found, search, invert, reset);
    this.figure = make("figure", { class: "flamegraph" }, tools, this.svg, this.caption);
    Object.assign(this, { search, found, invertButton: invert, resetButton: reset });
    place.append(this.figure);
    search.addEventListener("input", () => this.find(search.value));
    invert.addEventListener("click", () => this.invert());
    reset.addEventListener("click", () => this.zoom(this.top));
    this.svg.addEventListener("click", event => { const node = this.at(event.target); if (node) this.zoom(node); });
    for (const kind of ["mouseover", "focusin"]) this.svg.addEventListener(kind, event => { const node = this.at(event.target); if (node) this.tell(node); });
    this.svg.addEventListener("mouseleave", () => this.tell(null));
    this.svg.addEventListener("keydown", event => this.key(event));
    this.render();
    new ResizeObserver(() => { if (this.width !== this.measure()) this.render(); }).observe(this.svg);
  }

  measure() { return Math.max(200, Math.round(this.svg.getBoundingClientRect().width)); }

  at(target) {
    const group = target.closest && target.closest("g[data-n]");
    return group ? this.shown[Number(group.dataset.n)] : null;
  }

  render() {
    this.width = this.measure();
    const total = this.look.value(this.zoomed) || 1;
    const path = [];
    for (let node = this.zoomed; node.parent; node = node.parent) path.unshift(node);
    this.shown = [];
    const pieces = document.createDocumentFragment();
    let deepest = 0;
    const place = (node, x, width, isAbove) => {
      const row = node.depth;
      deepest = Math.max(deepest, row);
      const group = draw("g", {
        class: this.look.kind(node) + (isAbove ? " above" : "") + (this.matches(node) ? " match" : ""),
        "data-n": this.shown.length, role: "treeitem", tabindex: this.shown.length === 0 ? 0 : -1, "aria-level": row + 1,
      });
      node.group = group;
      const label = (this.look.label ? this.look.label(node) : "") + data.names[node.name][0];
      group.setAttribute("aria-label", data.names[node.name][0] + ", " + this.look.text(node, this.look.value(this.top)));
      this.shown.push(node);
      group.append(draw("rect", { x, y: row * ROW, width, height: ROW - 1, rx: 2 }));
      const short = fit(label, width - 8);
      if (short) group.append(draw("text", { x: x + 4, y: row * ROW + 14 }, short));
      pieces.append(group);
    };
    for (const node of path) place(node, 0, this.width, node !== this.zoomed);
    const visit = (node, x) => {
      for (const c of node.children) {
        const width = this.look.value(c) / total * this.width;
        if (width <= 0) continue;
        place(c, x, width, false);
        visit(c, x);
        x += width;
      }
    };
    visit(this.zoomed, 0);
    const height = (deepest + 1) * ROW;
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${height}`);
    this.svg.setAttribute("height", height);
    this.svg.replaceChildren(pieces);
    this.resetButton.disabled = this.zoomed === this.top;
    this.tell(null);
  }

  matches(node) { return this.query !== "" && data.names[node.name][0].toLowerCase().includes(this.query); }

  find(text) {
    this.query = text.trim().toLowerCase();
    // A call below one that matches is within its time.
    let time = 0;
    const visit = node => { if (node.parent && this.matches(node)) time += this.look.value(node); else node.children.forEach(visit); };
    visit(this.top);
    this.share = time / (this.look.value(this.top) || 1);
    this.found.textContent = this.query === "" ? "" : time === 0 ? "no match" : "matched " + percent(this.share);
    for (const node of this.shown) node.group.classList.toggle("match", this.matches(node));
  }

  invert() {
    this.isInverted = !this.isInverted;
    this.top = this.isInverted ? invertTree(this.tree) : this.tree;
    this.zoomed = this.top;
    this.invertButton.setAttribute("aria-pressed", this.isInverted);
    this.render();
    this.find(this.search.value);
  }

  zoom(node) {
    if (this.zoomed === node && node.parent) node = node.parent;
    this.zoomed = node;
    const focused = this.svg.contains(document.activeElement) ? node : null;
    this.render();
    if (focused && focused.group && focused.parent) this.focus(focused); else if (focused) this.focus(this.shown[0]);
  }

  focus(node) {
    if (!node || !node.group || !node.group.isConnected) return;
    for (const other of this.shown) other.group.setAttribute("tabindex", -1);
    node.group.setAttribute("tabindex", 0);
    node.group.focus();
  }

  key(event) {
    const node = this.at(event.target);
    if (!node) return;
    const siblings = node.parent.children.filter(c => c.group && c.group.isConnected);
    const index = siblings.indexOf(node);
    const inner = node.children.find(c => c.group && c.group.isConnected);
    const to = { ArrowDown: inner, ArrowUp: node.parent.parent ? node.parent : null, ArrowLeft: siblings[index - 1], ArrowRight: siblings[index + 1] }[event.key];
    if (event.key === "Enter" || event.key === " ") this.zoom(node);
    else if (event.key === "Escape" && this.zoomed !== this.top) this.zoom(this.top);
    else if (to) this.focus(to);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  tell(node) {
    this.caption.replaceChildren();
    if (!node) {
      this.caption.append(this.options.legend ? this.options.legend() : "");
      return;
    }
    const [name, image] = data.names[node.name];
    this.caption.append(make("span", { class: "fn" }, name), image ? "  in " + image : "", " · " + this.look.text(node, this.look.value(this.top)));
  }
}

function legend(...entries) {
  const list = make("span", { class: "legend" });
  for (const [kind, text] of entries) list.append(make("span", {}, make("i", { class: kind }), text));
  return list;
}
const callLegend = () => legend(["a", "the app's functions"], ["w", "waits"], ["s", "others"]);
const differenceLegend = () => legend(["more", "+ more time"], ["less", "− less time"], ["s", "about the same"]);

// ---------------------------------------------------------------- one stall in time
// Which function was on the stack when; the outermost that all samples share and are not the app's are left out.
function drawTimeline(place, example) {
  let outer = 0;
  const first = example.stacks[0] || [];
  while (outer < first.length - 1 && data.names[first[outer]][2] !== "a" && example.stacks.every(s => s[outer] === first[outer] && s.length > outer + 1)) outer++;
  const stacks = example.stacks.map(stack => stack.slice(outer));
  const holder = example.holder;
  const holderStack = holder ? holder.stack.slice(-8) : [];
  const depth = Math.max(1, ...stacks.map(stack => stack.length));
  const svg = draw("svg", { class: "flame timeline", role: "img", "aria-label": "The example's samples in time" });
  const caption = make("figcaption");
  const describe = text => { caption.textContent = text || (outer ? counted(outer, "outer call") + " left out; " : "") + counted(example.parts.length, "stretch", "stretches") + " of one stack each"; };
  function render() {
    const width = Math.max(200, Math.round(svg.getBoundingClientRect().width));
    const scale = width / (example.us || 1);
    const pieces = document.createDocumentFragment();
    const axis = draw("g", { class: "axis" });
    const steps = width < 500 ? 2 : 4;
    for (let i = 0; i <= steps; i++) {
      const x = width * i / steps;
      axis.append(draw("line", { x1: x, x2: x, y1: 0, y2: 6 }));
      axis.append(draw("text", { x: Math.min(x, width - 2), y: 18, "text-anchor": i === 0 ? "start" : i === steps ? "end" : "middle" }, time(example.us * i / steps)));
    }
    pieces.append(axis);
    let y = 26;
    for (let row = 0; row < depth; row++, y += ROW) {
      for (let i = 0; i < example.parts.length; i++) {
        const name = stacks[example.parts[i][2]][row];
        if (name === undefined) continue;
        // As long as it and its callers stay.
        const same = j => { const other = stacks[example.parts[j][2]], own = stacks[example.parts[i][2]]; for (let d = 0; d <= row; d++) if (other[d] !== own[d]) return false; return true; };
        let end = i;
        while (end + 1 < example.parts.length && same(end + 1)) end++;
        pieces.append(box(name, example.parts[i][0] * scale, (example.parts[end][1] - example.parts[i][0]) * scale, y, example.parts[end][1] - example.parts[i][0]));
        i = end;
      }
    }
    if (holder) {
      y += 8;
      pieces.append(draw("text", { x: 0, y: y + 12, class: "ink" }, "Held the lock: " + holder.label));
      y += ROW;
      const held = draw("g", { class: "holder" });
      for (const name of holderStack) { held.append(box(name, 0, width, y, example.us)); y += ROW; }
      pieces.append(held);
    }
    svg.setAttribute("viewBox", `0 0 ${width} ${y}`);
    svg.setAttribute("height", y);
    svg.replaceChildren(pieces);
  }
  function box(name, x, width, y, us) {
    const group = draw("g", { class: data.names[name][2] });
    group.append(draw("rect", { x, y, width: Math.max(0.5, width), height: ROW - 1, rx: 2 }));
    const label = data.names[name][0], short = fit(label, width - 8);
    if (short) group.append(draw("text", { x: x + 4, y: y + 14 }, short));
    const text = label + " · " + time(us);
    group.addEventListener("mouseover", () => describe(text));
    group.append(draw("title", {}, text));
    return group;
  }
  place.append(make("h3", {}, "The example in time"), make("figure", {}, svg, caption));
  svg.addEventListener("mouseleave", () => describe());
  describe();
  render();
  new ResizeObserver(() => { if (Math.round(svg.getBoundingClientRect().width) !== Number(svg.getAttribute("viewBox").split(" ")[2])) render(); }).observe(svg);
}

// ---------------------------------------------------------------- bars
// bars: [{ value, text, label }], drawn with their labels below.
function drawBars(place, title, bars, marks = []) {
  const largest = Math.max(...bars.map(bar => bar.value), 0);
  if (largest <= 0) return;
  const svg = draw("svg", { class: "bars plain", role: "img", "aria-label": title });
  const caption = make("figcaption");
  const rest = "Most: " + bars.reduce((a, b) => (b.value > a.value ? b : a)).text;
  caption.textContent = rest;
  const figure = make("figure", {}, svg, caption);
  place.append(make("div", {}, make("h3", {}, title), figure));
  function render() {
    const width = Math.max(160, Math.round(svg.getBoundingClientRect().width)), height = 120, base = marks.length ? 14 : 4, step = width / bars.length;
    const pieces = document.createDocumentFragment();
    pieces.append(draw("line", { x1: 0, x2: width, y1: height + base, y2: height + base }));
    let free = 0;
    bars.forEach((bar, index) => {
      const tall = bar.value / largest * height;
      const rect = draw("rect", { x: index * step + Math.min(1, step * 0.1), y: base + height - tall, width: Math.max(0.6, step - Math.min(2, step * 0.2)), height: tall });
      rect.append(draw("title", {}, bar.text));
      rect.addEventListener("mouseover", () => { caption.textContent = bar.text; });
      pieces.append(rect);
      const x = index * step + step / 2, room = bar.label.length * 6.6 + 10;
      if (x - room / 2 >= free && x + room / 2 <= width + 4) {
        pieces.append(draw("text", { x, y: height + base + 15, "text-anchor": "middle" }, bar.label));
        free = x + room / 2;
      }
    });
    let used = -Infinity;
    for (const mark of marks) {
      const x = Math.min(width - 1, mark.at * step);
      const line = draw("line", { class: "mark", x1: x, x2: x, y1: 0, y2: height + base });
      line.append(draw("title", {}, mark.text + " first seen"));
      pieces.append(line);
      const room = mark.text.length * 6.6;
      const start = x + 3 + room > width ? x - 3 - room : x + 3;
      if (start > used && start >= 0) { pieces.append(draw("text", { x: start, y: 10 }, mark.text)); used = start + room + 6; }
    }
    svg.setAttribute("viewBox", `0 0 ${width} ${height + base + 20}`);
    svg.setAttribute("height", height + base + 20);
    svg.replaceChildren(pieces);
  }
  svg.addEventListener("mouseleave", () => { caption.textContent = rest; });
  render();
  new ResizeObserver(() => { if (Math.round(svg.getBoundingClientRect().width) !== Number(svg.getAttribute("viewBox").split(" ")[2])) render(); }).observe(svg);
}

function drawTrend(place, group) {
  const parts = new Map(group.trend.map(([part, count, us]) => [part, { count, us }]));
  const bars = [];
  for (let part = 0; part < data.count; part++) {
    const { count, us } = parts.get(part) || { count: 0, us: 0 };
    const when = moment(part);
    bars.push({ value: us, label: data.unit === "day" ? when.slice(5) : when.slice(11), text: when + ": " + lost(us, count) + " in " + counted(count, "stall") });
  }
  const marks = data.marks.map(mark => ({ at: mark.at, text: data.names[mark.name][0] }));
  if (bars.length > 1) drawBars(place, "Lost by " + data.unit + " (UTC), versions marked where first seen", bars, marks);
}

function drawHistogram(place, group) {
  const used = group.bins.map((count, index) => index).filter(index => group.bins[index] > 0);
  if (!used.length) return;
  const name = ms => (ms < 1000 ? ms + " ms" : ms < 60000 ? ms / 1000 + " s" : ms < 3600000 ? ms / 60000 + " min" : "1 h");
  const bars = [];
  for (let i = Math.max(0, used[0] - 1); i <= Math.min(group.bins.length - 1, used[used.length - 1] + 1); i++) {
    const low = i === 0 ? "0" : name(data.bins[i - 1]), high = i < data.bins.length ? name(data.bins[i]) : null;
    bars.push({ value: group.bins[i], label: high ? "< " + high : "≥ " + low, text: (high ? low + " to " + high : low + " and more") + ": " + counted(group.bins[i], "stall") });
  }
  drawBars(place, "How long they lasted", bars);
}

// ---------------------------------------------------------------- locks
function drawLocks(place, group) {
  if (!group.locks.length) return;
  const svg = draw("svg", { class: "locks plain", role: "img", "aria-label": "Who waited for whom" });
  place.append(make("h3", {}, "Who waited for whom"), make("figure", {}, svg));
  const waiters = [...new Set(group.locks.map(lock => lock.waiter))], holders = [...new Set(group.locks.map(lock => lock.holder))];
  const most = Math.max(...group.locks.map(lock => lock.us));
  function render() {
    const width = Math.max(200, Math.round(svg.getBoundingClientRect().width));
    const isNarrow = width < 560, line = isNarrow ? 58 : 34;
    const height = (isNarrow ? group.locks.length : Math.max(waiters.length, holders.length)) * line + 14;
    const pieces = document.createDocumentFragment();
    const say = lock => counted(lock.count, "stall") + ", " + lost(lock.us, lock.count) + (lock.deadlock ? ", deadlock" : "");
    if (isNarrow) {
      group.locks.forEach((lock, index) => {
        const y = index * line + 16;
        pieces.append(draw("text", { x: 0, y, class: "ink" }, fit(data.names[lock.waiter][0], width, 6.4)));
        pieces.append(draw("text", { x: 0, y: y + 16 }, fit("→ " + data.names[lock.holder][0], width, 6.4)));
        pieces.append(draw("text", { x: 14, y: y + 31 }, say(lock)));
      });
    } else {
      const left = width * 0.36, right = width * 0.62, at = (list, name) => list.indexOf(name) * line + 26;
      group.locks.forEach(lock => {
        const y1 = at(waiters, lock.waiter) - 4, y2 = at(holders, lock.holder) - 4, middle = (left + right) / 2;
        const path = draw("path", { d: `M${left + 6},${y1} C${middle},${y1} ${middle},${y2} ${right - 6},${y2}`, "stroke-width": Math.max(1.5, lock.us / most * 12), class: lock.deadlock ? "dead" : "" });
        path.append(draw("title", {}, say(lock)));
        pieces.append(path);
        // On the side that the line leads away from; of several lines in the middle of each.
        const isOnly = group.locks.every(other => other === lock || other.waiter !== lock.waiter), side = y2 < y1 ? 17 : -10;
        pieces.append(draw("text", isOnly ? { x: left + 8, y: y1 + side } : { x: middle, y: (y1 + y2) / 2 + 4, "text-anchor": "middle", class: "ink" }, say(lock)));
      });
      for (const name of waiters) pieces.append(draw("text", { x: left, y: at(waiters, name), "text-anchor": "end", class: "ink" }, fit(data.names[name][0], left, 6.4)));
      for (const name of holders) pieces.append(draw("text", { x: right, y: at(holders, name), class: "ink" }, fit(data.names[name][0], width - right, 6.4)));
    }
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("height", height);
    svg.replaceChildren(pieces);
  }
  render();
  new ResizeObserver(() => { if (Math.round(svg.getBoundingClientRect().width) !== Number(svg.getAttribute("viewBox").split(" ")[2])) render(); }).observe(svg);
}

function drawNames(place, title, names) {
  if (names.length < 2) return;
  const most = names[0].us || 1;
  const body = make("tbody");
  for (const { name, count, us } of names.slice(0, 8)) {
    const bar = draw("svg", { class: "bar", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" });
    bar.append(draw("rect", { width: us / most * 100, height: 10 }));
    body.append(make("tr", {}, make("td", {}, make("bdi", {}, data.names[name][0])), make("td", { class: "n" }, counted(count, "stall")), make("td", { class: "n" }, lost(us, count)), make("td", {}, bar)));
  }
  const more = names.length > 8 ? make("p", { class: "soft" }, counted(names.length - 8, "more name")) : "";
  place.append(make("div", {}, make("h3", {}, title), make("table", {}, body), more));
}

// ---------------------------------------------------------------- the page
let rows = new Map(), order = [], groups;
const flames = new Map();  // by the element they are in
let marked = -1;

function read() {
  if (data) return;
  data = JSON.parse(document.getElementById("data").textContent);
  groups = new Map(data.groups.map(group => [group.id, group]));
  perHour = data.hours ? data.hours.map(hours => 1 / hours) : [1, 1];
  unit = data.hours ? " per watched hour" : "";
}

const flamePlaces = (place, tree) => {
  if (data.sides.length < 2) return [new Flame(place, "Where the time went", tree, plainLook(0), { legend: callLegend })];
  const pair = make("div", { class: "pair" });
  const left = make("div"), right = make("div");
  pair.append(left, right);
  place.append(pair);
  const list = data.sides.map((side, index) => new Flame(index ? right : left, (index ? "B: " : "A: ") + side, tree, plainLook(index), { legend: callLegend }));
  list.push(new Flame(place, "Difference: " + data.sides[0] + " → " + data.sides[1] + unit, tree, differenceLook, { legend: differenceLegend }));
  return list;
};

function drawGroup(section, group) {
  const place = section.querySelector(".draw");
  if (place.childElementCount) return;
  for (const command of section.querySelectorAll(".cmd")) command.append(make("button", { type: "button", "data-copy": "" }, "Copy"));
  const index = order.indexOf(group.id);
  const link = (id, text) => (id === undefined ? "" : make("a", { href: id ? "#g=" + id : "#" }, text));
  section.prepend(make("nav", { class: "path" }, link("", "All groups"), link(order[index - 1], "Previous"), link(order[index + 1], "Next"),
    make("span", { class: "rank" }, index + 1 + " of " + order.length)));
  flames.set(section, flamePlaces(place, readTree(group.tree)));
  if (group.example && group.example.parts.length) drawTimeline(place, group.example);
  drawLocks(place, group);
  const pair = make("div", { class: "pair" });
  place.append(pair);
  drawTrend(pair, group);
  drawHistogram(pair, group);
  drawNames(pair, "Versions", group.versions);
  drawNames(pair, "Hosts", group.hosts);
  drawNames(pair, "Systems", group.systems);
  drawNames(pair, "Devices", group.devices);
}

function drawOverview() {
  const place = document.querySelector("#overview .draw");
  if (place.childElementCount || !data.groups.length) return;
  flames.set(document.getElementById("overview"), flamePlaces(place, mergeTrees(data.groups.map(group => readTree(group.tree)))));
}

function wanted() {
  const found = /^#g=([0-9a-f]{1,16})/.exec(location.hash);
  return found ? order.find(id => id.startsWith(found[1]) || found[1].startsWith(id)) : undefined;
}

// The text comes first: what is drawn for a large page follows when it is there.
function later(work) {
  const run = () => { root.classList.remove("early"); read(); work(); root.dataset.ok = data.groups.length; };
  if (document.readyState === "complete") run();
  else addEventListener("load", () => setTimeout(run), { once: true });
}

function show() {
  const id = wanted();
  document.querySelectorAll(".group.at").forEach(section => section.classList.remove("at"));
  root.classList.toggle("one", id !== undefined);
  if (id === undefined) { later(drawOverview); return; }
  const section = document.getElementById("g=" + id);
  section.classList.add("at");
  marked = order.indexOf(id);
  later(() => { if (id === wanted()) drawGroup(section, groups.get(id)); });
  scrollTo({ top: 0, behavior: "instant" });
}

function go(id) { location.hash = id === undefined ? "#" : "#g=" + id; }

function mark(index) {
  marked = Math.max(0, Math.min(order.length - 1, index));
  rows.forEach((row, id) => row.classList.toggle("at", id === order[marked]));
  const row = rows.get(order[marked]);
  if (row) row.scrollIntoView({ block: "nearest", behavior: stillness.matches ? "auto" : "smooth" });
}

function present() { return flames.get(wanted() === undefined ? document.getElementById("overview") : document.getElementById("g=" + wanted())) || []; }

document.addEventListener("keydown", event => {
  const isTyping = event.target.matches("input");
  if (event.key === "Escape") {
    if (isTyping) { event.target.value = ""; event.target.dispatchEvent(new Event("input")); event.target.blur(); return; }
    const zoomed = present().filter(flame => flame.zoomed !== flame.top);
    if (zoomed.length) zoomed.forEach(flame => flame.zoom(flame.top)); else go();
    return;
  }
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  const isOne = wanted() !== undefined;
  if (event.key === "j" || event.key === "k") {
    const next = marked + (event.key === "j" ? 1 : -1);
    if (isOne) { if (order[next]) go(order[next]); } else mark(next);
  } else if (event.key === "Enter" && !isOne && marked >= 0 && event.target === document.body) go(order[marked]);
  else if (event.key === "/" && present().length) present()[0].search.focus();
  else if (event.key === "i") present().forEach(flame => flame.invert());
  else return;
  event.preventDefault();
});

document.addEventListener("click", event => {
  const copy = event.target.closest("button[data-copy]");
  if (copy) {
    const code = copy.parentElement.querySelector("code");
    const done = () => { copy.textContent = "Copied"; setTimeout(() => { copy.textContent = "Copy"; }, 1500); };
    const select = () => { getSelection().selectAllChildren(code); copy.textContent = "Selected"; };
    if (navigator.clipboard) navigator.clipboard.writeText(code.textContent).then(done, select); else select();
    return;
  }
  const row = event.target.closest("tr[data-g]");
  if (row && !event.target.closest("a")) go(row.dataset.g);
});

document.addEventListener("DOMContentLoaded", () => {
  rows = new Map([...document.querySelectorAll("tr[data-g]")].map(row => [row.dataset.g, row]));
  order = [...rows.keys()];
  addEventListener("hashchange", show);
  show();
});
})();
