"use strict";
(async () => {
  const unpacked = (id) => {
    const bytes = Uint8Array.from(atob(document.getElementById(id).textContent), (letter) => letter.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  };
  const data = JSON.parse(await unpacked("data"));
  const root = document.documentElement;
  const ROW = data.row_height, HIGH = 40, FONT = 12;
  const COLORS = 10, READABLE = 0.6;

  // ---- small words ----------------------------------------------------------------------------------------------

  const put = (node, ...children) => {
    node.append(...children.flat().filter((child) => child != null && child !== false));
    return node;
  };
  /** An element. Text is text: nothing of a model becomes markup. */
  const el = (tag, attributes = {}, ...children) => {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else if (value === true) node.setAttribute(name, "");
      else if (value !== false && value != null) node.setAttribute(name, value);
    }
    return put(node, ...children);
  };
  const color = (name) => getComputedStyle(root).getPropertyValue(`--${name}`).trim();
  const whole = (n) => n == null ? "–" : Math.round(n).toLocaleString("en-US");
  const short = (n) => n == null ? "–" : n && Math.abs(n) < 1e-3 ? n.toExponential(2) : Number(n.toPrecision(4)).toString();
  const scaled = (n, unit, step, names) => {
    let power = 0;
    while (Math.abs(n) >= step && power < names.length - 1) { n /= step; power++; }
    return `${power || n % 1 ? n.toPrecision(3) : n} ${names[power]}${unit}`;
  };
  const bytes = (n) => n == null ? "–" : n < 1024 ? `${n} B` : scaled(n, "B", 1024, ["", "Ki", "Mi", "Gi"]);
  const count = (n) => n < 1000 ? `${n}` : scaled(n, "", 1000, ["", "k", "M", "G", "T"]).trim();
  const micros = (us) => us == null ? "–" : us >= 1000 ? `${(us / 1000).toPrecision(4)} ms` : `${us.toPrecision(3)} µs`;
  const percent = (share) => `${(100 * share).toFixed(1)} %`;
  const shape = (t) => t.shape_signature.length ? t.shape_signature.map((n) => n < 0 ? "?" : n).join("x") : "scalar";
  const quantization = (q) => {
    if (!q) return "";
    if (!q.scales) return `${q.details}`;
    const point = (q.zero_points || [0])[0];
    if (q.scales === 1) return `${short(q.least_scale)} · ${point ? `(q ${point > 0 ? "−" : "+"} ${Math.abs(point)})` : "q"}`;
    return `${q.scales} scales ${short(q.least_scale)}…${short(q.greatest_scale)} along ${q.dimension}`;
  };
  const plain = (value) => Array.isArray(value) ? `[${value.map(plain).join(", ")}]`
    : value && typeof value === "object" ? Object.entries(value).map(([k, v]) => `${k}=${plain(v)}`).join(", ") : `${value}`;
  const bright = (hex) => {
    const [r, g, b] = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
    return 0.299 * r + 0.587 * g + 0.114 * b;
  };
  const mixed = (one, other, share) => "#" + [1, 3, 5].map((at) => {
    const [a, b] = [one, other].map((hex) => parseInt(hex.slice(at, at + 2), 16));
    return Math.round(a + (b - a) * share).toString(16).padStart(2, "0");
  }).join("");

  /** A table; a column whose name begins with > is of numbers, with ~ of text that may take several lines. */
  const CLASSES = { ">": "n", "~": "w" };
  const table = (columns, rows, attributes = () => ({})) => el("div", { class: "scroll" }, el("table", {},
    el("thead", {}, el("tr", {}, columns.map((name) => el("th", { class: name[0] === ">" && "n", scope: "col" }, name.replace(/^[>~]/, ""))))),
    el("tbody", {}, rows.map((row, i) => el("tr", attributes(i), row.map((cell, column) =>
      el("td", { class: CLASSES[columns[column][0]] ?? (column && "t") }, cell == null ? "" : cell)))))));
  const pairs = (entries) => el("table", {}, el("tbody", {}, entries.map(([name, value]) =>
    el("tr", {}, el("th", { scope: "row" }, name), el("td", { class: "w" }, value == null ? "" : value)))));
  const cards = (entries) => el("div", { class: "cards" }, entries.filter(([value]) => value != null && value !== "").map(([value, name]) =>
    el("div", { class: "card" }, el("b", {}, value), el("span", {}, name))));
  const links = (act) => ({ class: "link", tabindex: "0", onclick: act, onkeydown: (e) => { if (e.key === "Enter") act(); } });

  const bars = (statistics) => {
    const svg = (tag, attributes) => {
      const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
      for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
      return node;
    };
    const counts = statistics.bars, most = Math.max(...counts);
    const picture = svg("svg", { class: "bars", viewBox: `0 0 ${counts.length} 20`, preserveAspectRatio: "none", role: "img" });
    picture.append(...counts.map((n, x) => svg("rect", { x, y: 20 - 20 * n / most, width: 0.9, height: 20 * n / most })));
    return picture;
  };

  // ---- charts ---------------------------------------------------------------------------------------------------

  /** The library, which is read when the first chart needs it: the page answers before that. */
  let reading = null;
  const library = () => reading ??= unpacked("library").then((text) => { document.head.append(el("script", {}, text)); });
  const source = (columns) => new Bokeh.ColumnDataSource({ data: columns });
  const range = (start, end, bounds = null) => new Bokeh.Range1d({ start, end, bounds });
  /** Drag to move, the wheel zooms. */
  const handle = (fig, ...more) => {
    const { PanTool, WheelZoomTool } = Bokeh, zoom = new WheelZoomTool({ speed: 1 / 400 });
    fig.add_tools(new PanTool(), zoom, ...more);
    fig.toolbar.active_scroll = zoom;
  };

  const figure = (options) => {
    const text = color("faint");
    const fig = Bokeh.Plotting.figure({
      tools: [], toolbar_location: null, sizing_mode: "stretch_both", background_fill_color: color("page"),
      border_fill_color: color("page"), outline_line_color: null, lod_threshold: null, ...options,
    });
    for (const axis of [...fig.xaxes ?? [], ...fig.yaxes ?? [], ...(fig.below ?? []), ...(fig.left ?? [])]) {
      if (!("axis_label_text_color" in axis)) continue;
      Object.assign(axis, {
        axis_label_text_color: text, major_label_text_color: text, axis_line_color: color("line"),
        major_tick_line_color: color("line"), minor_tick_line_color: null, axis_label_text_font_style: "normal",
      });
    }
    for (const grid of fig.center ?? []) if ("grid_line_color" in grid) grid.grid_line_color = color("line");
    return fig;
  };
  const show = (fig, place) => { place.replaceChildren(); return Bokeh.Plotting.show(fig, place); };
  const tips = (shapes, tooltips) => new Bokeh.HoverTool({ renderers: [shapes].flat(), tooltips, point_policy: "follow_mouse" });

  // ---- parts ----------------------------------------------------------------------------------------------------

  const graphs = data.subgraphs;
  const named = (graph, index) => {
    const tensor = graph.tensors[index];
    return tensor ? tensor.name.split(";")[0] || `tensor ${index}` : `tensor ${index}`;
  };

  function summary(place) {
    const s = data.summary, sizes = s.sizes, flops = s.work.flops;
    const memory = s.memory.find((row) => row.arena != null);
    put(place,
      cards([
        [bytes(sizes.file), "file"], [whole(s.operator_count), "operators"], [count(s.parameters), "parameters"],
        [flops ? `${count(flops)}FLOP` : null, "work of a run, in programs"], [memory && bytes(memory.arena), "arena, TFLite's plan"],
        [data.profile && micros(data.profile.us), "a run, measured"],
        [data.versions.minimum_release || "unknown", "least runtime"],
        [data.micro.minimum_arena_bytes && bytes(data.micro.minimum_arena_bytes), "arena on a microcontroller"],
      ]),
      s.failure ? el("p", { class: "bad", role: "alert" }, `It cannot be allocated: ${s.failure}`) : null,
      s.faults.length ? el("p", { class: "bad" }, s.faults.map((f) => `${f.place}: ${f.message}`).join("; ")) : null,
    );
    const left = el("div"), right = el("div");
    place.append(el("div", { class: "two" }, left, right));
    const g = graphs[0];
    if (g) {
      const ends = [["input", g.inputs], ["output", g.outputs]].flatMap(([what, list]) => list.map((i) => [what, i])).filter(([, i]) => g.tensors[i]);
      left.append(el("h2", {}, "Inputs and outputs"), table(["", "~name", "type", "shape", "~quantization"],
        ends.map(([what, i]) => { const t = g.tensors[i]; return [what, t.name, t.type, shape(t), quantization(t.quantization)]; })));
    }
    if (s.signatures.length) left.append(el("h2", {}, "Signatures"), table(["key", ">subgraph", "~inputs", "~outputs"],
      s.signatures.map((x) => [x.key, x.subgraph, Object.keys(x.inputs).join(", "), Object.keys(x.outputs).join(", ")])));
    left.append(el("h2", {}, "Operators"), table([">count", "operator", ">version", "kernel"],
      s.operators.map((o) => [o.count, o.name + (o.custom ? " (custom)" : ""), o.version, o.kernel ? "yes" : "none"])));
    right.append(el("h2", {}, "Size"), pairs([
      ...Object.entries(sizes.by_type).map(([type, n]) => [`constants, ${type}`, `${bytes(n)} (${percent(n / sizes.file)})`]),
      ["all else", bytes(sizes.rest)]]));
    right.append(el("h2", {}, "Largest constants"), table(["~tensor", "type", "shape", ">bytes"],
      s.largest_constants.map((c) => [c.name, c.type, c.shape.join("x"), whole(c.bytes)])));
    if (s.programs.length) right.append(el("h2", {}, "Machine code"), table(["program", "target", ">commands", ">kernels", ">memory"],
      s.programs.map((p) => [`${p.subgraph}.${p.program}`, p.target, p.commands, p.kernels, bytes(Object.values(p.memory).reduce((a, b) => a + b, 0))])));
    const meta = s.metadata, said = ["name", "description", "version", "author", "license", "error"].filter((k) => meta[k]).map((k) => [k, meta[k]]);
    right.append(el("h2", {}, "Metadata"), pairs([
      ["description", s.description], ["schema", s.schema_version], ["named runtime", s.min_runtime_version], ...said,
      ...meta.entries.map((e) => [e.name, bytes(e.bytes)]), ...s.files.map((f) => [f.name, bytes(f.bytes)]), ["file", s.model],
    ].filter(([, value]) => value)));
  }

  // ---- the graph ------------------------------------------------------------------------------------------------

  const view = { graph: 0, by: "type", selected: null, off: new Set(), words: "" };

  function graphPart(place) {
    place.classList.add("whole");
    const canvas = el("div", { tabindex: "0", role: "application", id: "graph-canvas",
      "aria-label": "The graph. Arrows move along edges and layers, Tab through the operators in order, Escape clears the choice." });
    const results = el("div", { class: "results", hidden: true, id: "results", role: "listbox", "aria-label": "What was found" });
    const details = el("aside", { id: "details", tabindex: "-1", "aria-live": "polite" });
    const search = el("input", { type: "search", id: "search", placeholder: "Search  ( / )", "aria-label": "Search operators and tensors" });
    const timed = graphs.some((g) => g.operators.some((o) => o.us != null));
    const by = el("select", { id: "by", "aria-label": "Colors" }, [["type", "type"], ["delegate", "what runs it"], ...(timed ? [["time", "time"]] : [])]
      .map(([value, name]) => el("option", { value }, name)));
    const which = el("select", { id: "subgraph", "aria-label": "Subgraph" }, graphs.map((g, i) => el("option", { value: i }, `${i} ${g.name || ""} (${g.operators.length})`)));
    const legend = el("span", { id: "legend", style: "display: contents" });
    place.append(
      el("div", { class: "bar" }, search, el("label", {}, "color", by), graphs.length > 1 ? el("label", {}, "subgraph", which) : null,
        el("button", { id: "fit", title: "All of it (0)" }, "Fit"), legend),
      el("div", { class: "split" }, el("div", { class: "canvas" }, canvas, results), details));

    let g, boxes, after, before, fig, nodes, texts, marks, lit, scale = 1, cached = null, names;
    const hues = () => Array.from({ length: COLORS }, (_, i) => color(`c${i}`));

    const kind = (box) => box.operator == null ? (box.input != null ? "input" : "output")
      : view.by === "delegate" ? g.operators[box.operator].delegate ?? "reference kernel" : g.operators[box.operator].name;

    function palette() {
      const order = new Map();
      for (const box of boxes) if (box.operator != null) order.set(kind(box), (order.get(kind(box)) ?? 0) + 1);
      const sorted = [...order].sort((a, b) => b[1] - a[1]);
      const list = hues(), found = new Map();
      sorted.forEach(([name], i) => found.set(name, name === "reference kernel" ? list[1] : view.by === "delegate"
        ? (i % COLORS === 1 ? list[2] : list[i % COLORS]) : i < COLORS - (sorted.length > COLORS) ? list[i] : color("other")));
      return [found, sorted];
    }

    function fills() {
      const [found] = palette(), most = Math.max(1e-9, ...g.operators.map((o) => o.us ?? 0));
      const low = color("low"), high = color("high"), box0 = color("box");
      return boxes.map((box) => {
        if (box.operator == null) return box0;
        if (view.by === "time") { const us = g.operators[box.operator].us; return us == null ? box0 : mixed(low, high, Math.sqrt(us / most)); }
        return found.get(kind(box));
      });
    }


    function paint() {
      const fill = fills(), on = boxes.map((box, i) => !(view.off.size && box.operator != null && view.off.has(kind(box))) && (!view.words || names[i].includes(view.words)));
      nodes.data = { ...nodes.data, fill, alpha: on.map((yes) => yes ? 1 : 0.15) };
      boxes.forEach((box, i) => { box.ink = bright(fill[i]) > 125 ? "#16191d" : "#ffffff"; box.on = on[i]; });
      cached = null;
      label();
      showLegend();
      canvas.dataset.shown = on.filter(Boolean).length;
    }

    function showLegend() {
      if (view.by === "time") {
        const most = Math.max(...g.operators.map((o) => o.us ?? 0));
        legend.replaceChildren(el("span", { class: "key" }, "0 ", el("i", { class: "ramp" }), ` ${micros(most)}`));
        return;
      }
      const [found, sorted] = palette();
      legend.replaceChildren(...sorted.slice(0, 24).map(([name, n]) => el("button", {
        class: "key", "aria-pressed": `${!view.off.has(name)}`, title: "Show or dim these",
        onclick: () => { view.off.has(name) ? view.off.delete(name) : view.off.add(name); paint(); },
      }, el("i", { style: `background: ${found.get(name)}` }), `${name} ${n}`)), sorted.length > 24 ? el("span", { class: "faint" }, `and ${sorted.length - 24} more`) : "");
    }

    /** Text is drawn for what is in sight and large enough, and made anew only when that changes. */
    function label() {
      const x = fig.x_range, y = fig.y_range, wide = x.end - x.start, high = y.end - y.start;
      const at = canvas.clientWidth / wide;
      if (cached && cached.at === at && x.start >= cached.x0 && x.end <= cached.x1 && y.start >= cached.y0 && y.end <= cached.y1) return;
      scale = at;
      canvas.dataset.scale = at.toFixed(3);
      cached = { at, x0: x.start - wide / 2, x1: x.end + wide / 2, y0: y.start - high / 2, y1: y.end + high / 2 };
      const size = FONT * at, seen = size < 5 ? [] : boxes.filter((b) => b.x > cached.x0 && b.x < cached.x1 && -b.y * ROW > cached.y0 && -b.y * ROW < cached.y1);
      canvas.dataset.texts = seen.length;
      texts.glyph.text_font_size = { value: `${size.toFixed(2)}px` };
      texts.below.glyph.text_font_size = { value: `${(0.83 * size).toFixed(2)}px` };
      texts.data.data = {
        x: seen.map((b) => b.x), y: seen.map((b) => -b.y * ROW + 9), y2: seen.map((b) => -b.y * ROW - 8),
        title: seen.map((b) => b.title), below: seen.map((b) => b.below), ink: seen.map((b) => b.ink), alpha: seen.map((b) => b.on ? 1 : 0.3),
      };
    }

    function curve(points) {
      const xs = [points[0][0]], ys = [points[0][1]];
      for (let i = 1; i < points.length; i++) {
        const [x0, y0] = points[i - 1], [x1, y1] = points[i];
        if (Math.abs(x0 - x1) > 1) for (let t = 0.125; t < 0.999; t += 0.125) {
          const ease = t * t * (3 - 2 * t);
          xs.push(x0 + (x1 - x0) * ease); ys.push(y0 + (y1 - y0) * t);
        }
        xs.push(x1); ys.push(y1);
      }
      return [xs, ys];
    }
    const route = ([a, b, , bends]) => curve([[boxes[a].x, -boxes[a].y * ROW - HIGH / 2],
      ...bends.map(([x, y]) => [x, -y * ROW]), [boxes[b].x, -boxes[b].y * ROW + HIGH / 2]]);

    function load(index) {
      view.graph = index;
      g = graphs[index]; boxes = g.boxes;
      after = boxes.map(() => []); before = boxes.map(() => []);
      for (const [a, b] of g.edges) { after[a].push(b); before[b].push(a); }
      names = boxes.map((box) => {
        const o = box.operator == null ? null : g.operators[box.operator];
        const tensors = o ? [...o.inputs, ...o.outputs] : [box.input ?? box.output];
        return [box.title, box.below, o ? `${o.index} ${o.delegate ?? "reference kernel"}` : "", ...tensors.map((t) => g.tensors[t]?.name ?? "")].join(" ").toLowerCase();
      });
      build();
    }

    function build() {
      const old = fig && { x: [fig.x_range.start, fig.x_range.end], y: [fig.y_range.start, fig.y_range.end], g: fig.of };
      fig = figure({ x_axis_type: null, y_axis_type: null, min_border: 0, x_range: range(0, 1), y_range: range(0, 1) });
      fig.of = view.graph;
      for (const grid of fig.center ?? []) grid.visible = false;
      handle(fig);
      const routes = g.edges.map(route);
      fig.multi_line({ xs: { field: "xs" }, ys: { field: "ys" }, source: source({ xs: routes.map((r) => r[0]), ys: routes.map((r) => r[1]) }), line_color: color("edge"), line_width: 1.3 });
      lit = source({ xs: [], ys: [], hue: [] });
      fig.multi_line({ xs: { field: "xs" }, ys: { field: "ys" }, source: lit, line_color: { field: "hue" }, line_width: 2.6 });
      nodes = source({ x: boxes.map((b) => b.x), y: boxes.map((b) => -b.y * ROW), w: boxes.map((b) => b.width), fill: boxes.map(() => "#888888"), alpha: boxes.map(() => 1) });
      fig.rect({ x: { field: "x" }, y: { field: "y" }, width: { field: "w" }, height: HIGH, source: nodes, fill_color: { field: "fill" }, fill_alpha: { field: "alpha" }, line_color: null, border_radius: boxes.length < 600 ? 6 : 0 });
      marks = source({ x: [], y: [], w: [] });
      fig.rect({ x: { field: "x" }, y: { field: "y" }, width: { field: "w" }, height: HIGH + 8, source: marks, fill_color: null, line_color: color("focus"), line_width: 3, border_radius: 8 });
      const data = source({ x: [], y: [], y2: [], title: [], below: [], ink: [], alpha: [] });
      const text = (y, field, style) => fig.text({ x: { field: "x" }, y: { field: y }, text: { field }, source: data, text_color: { field: "ink" }, text_alpha: { field: "alpha" }, text_align: "center", text_baseline: "middle", text_font: "system-ui, 'DejaVu Sans', sans-serif", text_font_style: style });
      texts = text("y", "title", "bold"); texts.below = text("y2", "below", "normal"); texts.data = data;
      fig.x_range.properties.start.change.connect(soon); fig.x_range.properties.end.change.connect(soon); fig.y_range.properties.start.change.connect(soon);
      show(fig, canvas);
      if (old && old.g === view.graph) { [fig.x_range.start, fig.x_range.end] = old.x; [fig.y_range.start, fig.y_range.end] = old.y; } else begin();
      paint();
      if (view.selected != null) mark();
    }
    let waiting = false;
    const soon = () => { if (!waiting) { waiting = true; requestAnimationFrame(() => { waiting = false; label(); }); } };

    function extent() {
      const x0 = Math.min(...boxes.map((b) => b.x - b.width / 2)), x1 = Math.max(...boxes.map((b) => b.x + b.width / 2));
      return { x0, x1, y1: HIGH, y0: -Math.max(...boxes.map((b) => b.y)) * ROW - HIGH };
    }
    /** Show what is around a point, at so many pixels for one of the drawing. */
    function look(x, y, at) {
      const w = canvas.clientWidth / at / 2, h = canvas.clientHeight / at / 2;
      Object.assign(fig.x_range, { start: x - w, end: x + w });
      Object.assign(fig.y_range, { start: y - h, end: y + h });
    }
    const fitting = () => { const e = extent(); return Math.min(canvas.clientWidth / (e.x1 - e.x0 + 60), canvas.clientHeight / (e.y0 - e.y1 - 60) * -1, 1.25); };
    function fit() { const e = extent(); look((e.x0 + e.x1) / 2, (e.y0 + e.y1) / 2, fitting()); }
    function begin() {
      const e = extent(), at = Math.max(fitting(), Math.min(0.85, canvas.clientWidth / (e.x1 - e.x0 + 60)), 0.5);
      if (at <= fitting()) return fit();
      const top = boxes.reduce((best, b) => b.y < best.y ? b : best, boxes[0]);
      look(e.x1 - e.x0 < canvas.clientWidth / at ? (e.x0 + e.x1) / 2 : top.x, e.y1 + 20 - canvas.clientHeight / at / 2, at);
    }
    function zoomBy(factor) { const x = fig.x_range, y = fig.y_range; look((x.start + x.end) / 2, (y.start + y.end) / 2, scale * factor); }

    function mark() {
      const i = view.selected;
      marks.data = i == null ? { x: [], y: [], w: [] } : { x: [boxes[i].x], y: [-boxes[i].y * ROW], w: [boxes[i].width + 8] };
      const near = i == null ? [] : g.edges.filter(([a, b]) => a === i || b === i);
      const routes = near.map(route);
      lit.data = { xs: routes.map((r) => r[0]), ys: routes.map((r) => r[1]), hue: near.map(([a]) => a === i ? color("mark") : color("focus")) };
    }
    function select(i, move = true) {
      view.selected = i;
      mark();
      describe();
      canvas.dataset.selected = i ?? "";
      if (i == null || !move) return;
      if (scale < READABLE) { look(boxes[i].x, -boxes[i].y * ROW, READABLE); return; }
      const x = fig.x_range, y = fig.y_range, aside = boxes[i].width / 2 + 30, above = HIGH + 30, at = -boxes[i].y * ROW;
      const shift = (from, to, low, high) => low < from ? low - from : high > to ? high - to : 0;
      const dx = shift(x.start, x.end, boxes[i].x - aside, boxes[i].x + aside), dy = shift(y.start, y.end, at - above, at + above);
      if (dx || dy) look((x.start + x.end) / 2 + dx, (y.start + y.end) / 2 + dy, scale);
    }

    const tensorRow = (index) => {
      const t = g.tensors[index];
      if (!t) return [index < 0 ? "none" : `tensor ${index}`, "", ""];
      return [el("span", {}, t.name || `tensor ${index}`, t.kind === "computed" ? "" : el("span", { class: "faint" }, ` ${t.kind}`),
        t.quantization ? el("div", { class: "faint" }, quantization(t.quantization)) : "", t.statistics?.bars?.length > 1 ? bars(t.statistics) : "",
        t.statistics?.bars ? el("div", { class: "faint" }, `${short(t.statistics.min)} to ${short(t.statistics.max)}, mean ${short(t.statistics.mean)}`) : ""),
      `${t.type} ${shape(t)}`, bytes(t.bytes)];
    };
    const tensorTable = (list) => table(["~name", "type, shape", ">bytes"], list.map(tensorRow));

    function describe() {
      const box = view.selected == null ? null : boxes[view.selected];
      if (!box) {
        details.replaceChildren(el("h2", {}, "Click an operator"),
          el("p", { class: "faint" }, "Drag to move, turn the wheel to zoom."),
          pairs([["/", "search"], ["arrows", "along edges and layers"], ["Tab", "next operator in order"], ["+ − 0", "zoom, fit"], ["Enter", "read the details"], ["Esc", "back"], ["1 … 8", "parts of the report"], ["t", "light, dark"]]
            .map(([key, what]) => [el("kbd", {}, key), what])));
        return;
      }
      if (box.operator == null) {
        details.replaceChildren(el("h2", {}, box.title), tensorTable([box.input ?? box.output]));
        return;
      }
      const o = g.operators[box.operator];
      details.replaceChildren(el("h2", {}, `${o.name} ${o.index}`), pairs([
        ["version", o.version], ["runs as", o.delegate ?? "reference kernel"], ["because", o.delegate ? null : o.why],
        ["time", o.us == null ? null : `${micros(o.us)}${o.shared > 1 ? `, its share as one of ${o.shared} computed together` : ""}`],
      ].filter(([, value]) => value != null)));
      if (o.kernels?.length) details.append(el("h3", {}, "Kernels"), table(["~kernel", ">time"], o.kernels.map(([name, us, n]) =>
        [el("span", {}, name, n > 1 ? el("span", { class: "faint" }, ` for ${n} operators`) : ""), micros(us)])));
      const options = Object.entries(o.options);
      if (options.length) details.append(el("h3", {}, "Options"), pairs(options.map(([name, value]) => [name, plain(value)])));
      details.append(el("h3", {}, "Inputs"), tensorTable(o.inputs), el("h3", {}, "Outputs"), tensorTable(o.outputs));
      details.scrollTop = 0;
    }

    function find() {
      view.words = search.value.trim().toLowerCase();
      const found = view.words ? boxes.map((_, i) => i).filter((i) => names[i].includes(view.words)) : [];
      results.hidden = !view.words;
      results.replaceChildren(...found.slice(0, 60).map((i) => el("button", { role: "option", onclick: () => { select(i); canvas.focus(); results.hidden = true; } },
        `${boxes[i].title} ${boxes[i].operator ?? ""} `, el("span", { class: "faint" }, boxes[i].below))),
      el("p", { class: "faint", style: "margin: 4px 9px" }, found.length > 60 ? `and ${found.length - 60} more` : found.length ? "" : "nothing has this name"));
      paint();
      return found;
    }
    const clear = () => { search.value = ""; find(); canvas.focus(); };
    search.addEventListener("input", find);
    search.addEventListener("keydown", (e) => {
      if (e.key === "Enter") { const found = find(); if (found.length) { select(found[0]); canvas.focus(); results.hidden = true; } }
      if (e.key === "ArrowDown") results.querySelector("button")?.focus();
      if (e.key === "Escape") clear();
      e.stopPropagation();
    });
    results.addEventListener("keydown", (e) => {
      if (e.key === "ArrowDown") e.target.nextElementSibling?.focus();
      if (e.key === "ArrowUp") (e.target.previousElementSibling ?? search).focus();
      if (e.key === "Escape") clear();
    });

    const within = (i, step) => {
      const row = boxes.map((b, n) => n).filter((n) => boxes[n].layer === boxes[i].layer).sort((a, b) => boxes[a].x - boxes[b].x);
      return row[row.indexOf(i) + step];
    };
    const nearest = (list, i) => {
      const far = (n) => 1e6 * Math.abs(boxes[n].layer - boxes[i].layer) + Math.abs(boxes[n].x - boxes[i].x);
      return [...list].sort((a, b) => far(a) - far(b))[0];
    };
    canvas.addEventListener("keydown", (e) => {
      if (e.ctrlKey || e.altKey || e.metaKey) return;
      const i = view.selected;
      const to = {
        ArrowDown: () => i == null ? 0 : nearest(after[i], i), ArrowUp: () => i == null ? 0 : nearest(before[i], i),
        ArrowLeft: () => i == null ? 0 : within(i, -1), ArrowRight: () => i == null ? 0 : within(i, 1),
        Tab: () => i == null ? undefined : i + (e.shiftKey ? -1 : 1),
      }[e.key]?.();
      if (to != null && boxes[to]) select(to);
      else if (e.key === "Escape") view.words ? clear() : select(null);
      else if (e.key === "Enter") details.focus();
      else if (e.key === "+" || e.key === "=") zoomBy(1.3);
      else if (e.key === "-") zoomBy(1 / 1.3);
      else if (e.key === "0") fit();
      else if (e.key === "Tab" || !e.key.startsWith("Arrow")) return;
      e.preventDefault();
      e.stopPropagation();
    });
    details.addEventListener("keydown", (e) => { if (e.key === "Escape") canvas.focus(); });

    let pressed = null;
    canvas.addEventListener("pointerdown", (e) => { pressed = [e.clientX, e.clientY]; }, true);
    canvas.addEventListener("pointerup", (e) => {
      if (!pressed || Math.hypot(e.clientX - pressed[0], e.clientY - pressed[1]) > 4) return;
      const area = canvas.getBoundingClientRect();
      const x = fig.x_range.start + (e.clientX - area.left) / area.width * (fig.x_range.end - fig.x_range.start);
      const y = fig.y_range.end - (e.clientY - area.top) / area.height * (fig.y_range.end - fig.y_range.start);
      const hit = boxes.findIndex((b) => Math.abs(b.x - x) <= b.width / 2 && Math.abs(-b.y * ROW - y) <= HIGH / 2);
      select(hit < 0 ? null : hit, false);
      canvas.focus({ preventScroll: true });
    }, true);
    by.addEventListener("change", () => { view.by = by.value; view.off.clear(); paint(); });
    which.addEventListener("change", () => { view.selected = null; view.off.clear(); search.value = view.words = ""; load(Number(which.value)); describe(); });
    place.querySelector("#fit").addEventListener("click", fit);
    new ResizeObserver(() => { if (fig && canvas.clientWidth) look((fig.x_range.start + fig.x_range.end) / 2, (fig.y_range.start + fig.y_range.end) / 2, scale); }).observe(canvas);

    /** For other parts: choose the box of an operator, or of what makes a tensor. */
    reach = (graph, test) => {
      if (view.graph !== graph) { which.value = graph; load(graph); }
      const i = boxes.findIndex(test);
      if (i >= 0) { select(i); canvas.focus(); }
    };
    window.report = { where: (i) => {
      const area = canvas.getBoundingClientRect(), x = fig.x_range, y = fig.y_range, b = boxes[i];
      return [area.left + (b.x - x.start) / (x.end - x.start) * area.width, area.top + (y.end + b.y * ROW) / (y.end - y.start) * area.height];
    }, look: (x, y, at) => look(x, y, at) };
    describe();
    load(0);
    return () => build();
  }
  let reach = null;
  const toOperator = async (graph, position) => { await open("graph"); reach(graph, (b) => b.operator === position); };
  const toTensor = async (graph, index) => {
    await open("graph");
    const position = graphs[graph].operators.findIndex((o) => o.outputs.includes(index));
    reach(graph, position >= 0 ? (b) => b.operator === position : (b) => b.input === index);
  };

  // ---- memory ---------------------------------------------------------------------------------------------------

  function memory(place) {
    if (!data.arenas.length) { place.append(el("p", {}, data.summary.failure ? `There is no plan: ${data.summary.failure}` : "There is no arena: nothing is computed.")); return null; }
    let arena = data.arenas[0], plan = arena.plans[0];
    const chart = el("div", { class: "chart", id: "arena" }), choices = el("div"), alive = el("div");
    const which = el("select", { "aria-label": "Subgraph" }, data.arenas.map((a, i) => el("option", { value: i }, `subgraph ${a.subgraph}`)));
    which.addEventListener("change", () => { arena = data.arenas[which.value]; plan = arena.plans[0]; draw(); });
    place.append(el("h2", {}, "The arena over time"),
      el("p", { class: "faint" }, "Operators run from left to right; a box is a tensor, from the first operator that needs it to the last, at its place in memory. The red line is the size of the arena, the dashed one the most bytes that are alive at once, at the operator that is marked: no planner can do with less."),
      data.arenas.length > 1 ? which : "", choices, chart, el("h2", {}, "Alive at the peak"), alive);
    function draw() {
      const g = graphs[arena.subgraph];
      choices.replaceChildren(table(["planner", ">bytes", ">of the least"], arena.plans.map((p) => [p.planner, whole(p.bytes), percent(p.bytes / Math.max(p.lower_bound, 1))]),
        (i) => ({ ...links(() => { plan = arena.plans[i]; draw(); }), class: `link${arena.plans[i] === plan ? " chosen" : ""}` })));
      const rows = plan.buffers, makers = new Map();
      g.operators.forEach((o) => o.outputs.forEach((t) => makers.set(t, o.name)));
      const kinds = [...new Set(rows.map(([b]) => makers.get(b) ?? (g.inputs.includes(b) ? "input" : "scratch")))];
      const hue = (b) => { const kind = makers.get(b) ?? (g.inputs.includes(b) ? "input" : "scratch"), i = kinds.indexOf(kind); return i < COLORS ? color(`c${i}`) : color("other"); };
      const change = new Array(arena.steps + 2).fill(0);
      for (const [, , size, first, last] of rows) { change[first] += size; change[last + 1] -= size; }
      let sum = 0, most = 0, peak = 0;
      for (let i = 0; i <= arena.steps; i++) { sum += change[i]; if (sum > most) { most = sum; peak = i; } }
      const end = Math.max(arena.steps, 1) + 0.5, top = plan.bytes * 1.06 || 1;
      const fig = figure({ x_range: range(-0.5, end, [-0.5, end]), y_range: range(0, top, [0, top]), x_axis_label: "operator", y_axis_label: "bytes" });
      for (const axis of fig.left ?? []) Object.assign(axis, { ticker: new Bokeh.AdaptiveTicker({ base: 1024, mantissas: [1, 2, 4, 8, 16, 32, 64, 128, 256, 512], min_interval: 1 }), formatter: new Bokeh.NumeralTickFormatter({ format: "0.[00] ib" }) });
      fig.quad({ left: [peak], right: [peak + 1], bottom: [0], top: [top], fill_color: color("mark"), fill_alpha: 0.12, line_color: null });
      const columns = source({
        left: rows.map((r) => r[3]), right: rows.map((r) => r[4] + 1), bottom: rows.map((r) => r[1]), top: rows.map((r) => r[1] + r[2]),
        fill: rows.map((r) => hue(r[0])), name: rows.map((r) => named(g, r[0])), size: rows.map((r) => `${whole(r[2])} bytes at ${whole(r[1])}`), life: rows.map((r) => `operators ${r[3]} to ${r[4]}`), maker: rows.map((r) => makers.get(r[0]) ?? ""),
      });
      const boxes = fig.quad({ left: { field: "left" }, right: { field: "right" }, bottom: { field: "bottom" }, top: { field: "top" }, source: columns, fill_color: { field: "fill" }, fill_alpha: 0.85, line_color: color("page"), line_width: rows.length > 400 ? 0.2 : 1 });
      fig.line({ x: [peak + 0.5, peak + 0.5], y: [0, top], line_color: color("mark"), line_alpha: 0.6 });
      fig.line({ x: [-0.5, end], y: [plan.bytes, plan.bytes], line_color: color("mark"), line_width: 2 });
      fig.line({ x: [-0.5, end], y: [plan.lower_bound, plan.lower_bound], line_color: color("mark"), line_dash: "dashed" });
      handle(fig, new Bokeh.ResetTool(), tips(boxes, [["tensor", "@name"], ["written by", "@maker"], ["size", "@size"], ["alive", "@life"]]));
      show(fig, chart);
      const living = rows.filter((r) => r[3] <= peak && peak <= r[4]).sort((a, b) => b[2] - a[2]);
      alive.replaceChildren(el("p", { class: "faint" }, `${bytes(most)} at operator ${peak}${g.operators[peak] ? `, ${g.operators[peak].name}` : ""}`),
        table(["~tensor", "written by", ">bytes", ">from", ">to"], living.slice(0, 30).map((r) => [named(g, r[0]), makers.get(r[0]) ?? "", whole(r[2]), r[3], r[4]]), (i) => links(() => toTensor(arena.subgraph, living[i][0]))));
    }
    draw();
    return draw;
  }

  // ---- time -----------------------------------------------------------------------------------------------------

  const rates = (peak, work, flops, memory) => [work[flops] ? (work[flops] / 1e9).toFixed(1) : "", peak && work[flops] ? percent(work[flops] / peak[flops]) : "", work[memory] ? (work[memory] / 1e9).toFixed(1) : ""];

  function profile(place) {
    const p = data.profile;
    if (!p) { place.append(el("p", {}, "Not measured. ", el("code", {}, "gossamer report MODEL --profile"), " measures it.")); return null; }
    const share = (part) => el("span", {}, el("span", { class: "share", style: `width: ${Math.max(1, 120 * part)}px` }), ` ${percent(part)}`);
    const operators = graphs.flatMap((g, i) => g.operators.filter((o) => o.us != null).map((o) => [i, o])).sort((a, b) => b[1].us - a[1].us);
    const types = new Map();
    for (const [, o] of operators) { const t = types.get(o.name) ?? [0, 0]; types.set(o.name, [t[0] + o.us, t[1] + 1]); }
    place.append(cards([[micros(p.us), `a run, median of ${p.runs}`], [micros(p.outside_us), "of it outside the operators"], [p.peak && `${(p.peak.flops_per_s / 1e9).toFixed(0)} GFLOP/s`, "the machine's peak, measured"], [p.peak && `${(p.peak.bytes_per_s / 1e9).toFixed(0)} GB/s`, "from memory, measured"]]),
      el("p", { class: "faint" }, "Operators that are computed as one share the time evenly. Outside of them is the way through Python."),
      el("div", { class: "two" },
        el("div", {}, el("h2", {}, "By type"), table(["operator", ">count", ">time", "share"], [...types].sort((a, b) => b[1][0] - a[1][0]).map(([name, [us, n]]) => [name, n, micros(us), share(us / p.us)]))),
        el("div", {}, el("h2", {}, "Operators, the slowest first"), table([">node", "operator", "~result", ">time", "share"], operators.slice(0, 40).map(([i, o]) => [o.index, o.name, named(graphs[i], o.outputs[0]), micros(o.us), share(o.us / p.us)]), (n) => links(() => toOperator(operators[n][0], operators[n][1].index))))),
      el("h2", {}, "Kernels"), table(["~kernels", ">commands", ">time", "share", ">GFLOP/s", ">of peak", ">GB/s"], p.kernels.slice(0, 60).map((k) => [k.kernels.join(", "), k.commands, micros(k.us), share(k.share), ...rates(p.peak, k, "flops_per_s", "bytes_per_s")])));
    return null;
  }

  function roofline(place) {
    const p = data.profile;
    if (!p || !p.peak) { place.append(el("p", {}, p ? "The machine's peaks were not measured: no archive has the kernels for that, and there is no compiler." : "Not measured. ", p ? "" : el("code", {}, "gossamer report MODEL --profile"), p ? "" : " measures it.")); return null; }
    const chart = el("div", { class: "chart", id: "roof", style: "height: 560px" });
    place.append(el("h2", {}, "Roofline"), el("p", { class: "faint" }, "A point is a command of the program: its floating-point (or integer) operations for each byte that it must read or write, and how many it does in a second. The roof is what kernels made for it reach on this machine; points above the slope find their bytes in caches. The upper roof is that of products of bytes. The larger a point, the more of the time it takes."), chart);
    const commands = p.programs.flatMap((program) => program.commands).filter((c) => c.flops_per_s && c.read + c.written);
    function draw() {
      const kinds = [...new Set(commands.map((c) => c.kind))];
      const x = commands.map((c) => c.flops / (c.read + c.written)), y = commands.map((c) => c.flops_per_s / 1e9);
      const slope = p.peak.bytes_per_s / 1e9, tops = [p.peak.flops_per_s / 1e9];
      if (commands.some((c) => c.multiplies_bytes)) tops.push(p.peak.byte_flops_per_s / 1e9);
      const top = Math.max(...tops), low = Math.min(0.1, ...x) / 1.5, high = Math.max((top / slope) * 4, ...x) * 1.5;
      const fig = figure({ x_axis_type: "log", y_axis_type: "log", x_range: range(low, high), y_range: range(Math.min(...y, slope * low) / 2, Math.max(...y, top) * 2), x_axis_label: "operations per byte", y_axis_label: "GFLOP/s (GOP/s)" });
      for (const roof of tops) fig.line({ x: [low, roof / slope, high], y: [slope * low, roof, roof], line_color: color("mark"), line_width: 2 });
      const shown = [];
      kinds.forEach((kind, n) => {
        const mine = commands.map((c, i) => i).filter((i) => commands[i].kind === kind);
        shown.push(fig.scatter({ x: { field: "x" }, y: { field: "y" }, size: { field: "size" }, legend_label: kind, fill_color: n < COLORS ? color(`c${n}`) : color("other"), fill_alpha: 0.75, line_color: color("page"), source: source({
          x: mine.map((i) => x[i]), y: mine.map((i) => y[i]), size: mine.map((i) => 6 + 60 * Math.sqrt(commands[i].share)), kernel: mine.map((i) => [commands[i].kernel, ...commands[i].calls].join(", ")), of: mine.map((i) => commands[i].operators.join(", ")), time: mine.map((i) => micros(commands[i].us)), rate: mine.map((i) => `${y[i].toFixed(1)} GFLOP/s, ${(commands[i].bytes_per_s / 1e9).toFixed(1)} GB/s`),
        }) }));
      });
      handle(fig, new Bokeh.ResetTool(), tips(shown, [["kernel", "@kernel"], ["operators", "@of"], ["time", "@time"], ["rate", "@rate"]]));
      const legend = fig.legend;
      Object.assign(legend, { location: "bottom_right", background_fill_color: color("panel"), label_text_color: color("text"), border_line_color: color("line") });
      show(fig, chart);
    }
    draw();
    return draw;
  }

  // ---- tensors --------------------------------------------------------------------------------------------------

  function tensors(place) {
    const all = graphs.flatMap((g, i) => g.tensors.map((t) => ({ ...t, graph: i })));
    const words = el("input", { type: "search", placeholder: "Filter by name, type, kind", "aria-label": "Filter tensors", id: "filter" });
    const list = el("div"), chart = el("div", { class: "chart", id: "histogram", style: "height: 300px" }), title = el("p", { class: "faint" }, "Choose a tensor to see its histogram.");
    let shown = 200, chosen = null;
    place.append(el("h2", {}, "Tensors"), el("p", { class: "faint" }, data.sampled ? "Statistics are of all samples; integers count as the real numbers that they stand for." : "Statistics are of constants; --data SAMPLES adds what is computed from them."), title, chart, el("p", {}, words), list);
    chart.hidden = true;
    function draw() {
      const asked = words.value.trim().toLowerCase();
      const rows = all.filter((t) => `${t.name} ${t.type} ${t.kind}`.toLowerCase().includes(asked));
      const s = (t, name) => t.statistics?.[name] == null ? "" : short(t.statistics[name]);
      list.replaceChildren(table([...(graphs.length > 1 ? [">subgraph"] : []), ">tensor", "~name", "kind", "type", "shape", ">bytes", "~quantization", ">least", ">greatest", ">mean", ">deviation", ">zeros", ">at limits"],
        rows.slice(0, shown).map((t) => [...(graphs.length > 1 ? [t.graph] : []), t.index, t.name, t.kind, t.type, shape(t), whole(t.bytes), quantization(t.quantization), s(t, "min"), s(t, "max"), s(t, "mean"), s(t, "std"), t.statistics?.zeros == null ? "" : percent(t.statistics.zeros), t.statistics?.at_limits == null ? "" : percent(t.statistics.at_limits)]),
        (i) => links(() => choose(rows[i]))),
      rows.length > shown ? el("button", { onclick: () => { shown *= 4; draw(); } }, `Show more of ${rows.length - shown}`) : "");
      list.dataset.count = rows.length;
    }
    function choose(t) { chosen = t; histogram(); place.scrollTop = 0; }
    function histogram() {
      const s = chosen?.statistics;
      chart.hidden = !s?.bars;
      if (!chosen) return;
      title.replaceChildren(el("b", {}, chosen.name || `tensor ${chosen.index}`), s?.bars ? ` ${whole(s.count)} values${s.not_finite ? `, ${whole(s.not_finite)} of them not finite` : ""} ` : data.sampled || chosen.kind === "constant" ? " has no statistics. " : " is computed: --data SAMPLES shows its values. ",
        el("button", { onclick: () => toTensor(chosen.graph, chosen.index) }, "Show it in the graph"));
      if (!s?.bars) return;
      const [from, to] = s.between, step = (to - from) / s.bars.length || 1;
      const fig = figure({ x_axis_label: "value", y_axis_label: "how often", y_range: range(0, 1.05 * Math.max(...s.bars)) });
      const shapes = fig.quad({ left: { field: "left" }, right: { field: "right" }, bottom: 0, top: { field: "top" }, source: source({ left: s.bars.map((_, i) => from + i * step), right: s.bars.map((_, i) => from + (i + 1) * step), top: s.bars }), fill_color: color("accent"), line_color: color("page") });
      fig.add_tools(tips(shapes, [["from", "@left"], ["to", "@right"], ["values", "@top"]]));
      show(fig, chart);
    }
    words.addEventListener("input", () => { shown = 200; draw(); });
    draw();
    return () => histogram();
  }

  function versions(place) {
    const v = data.versions;
    place.append(cards([[v.minimum_release || "unknown", "the first release that has every operator"], [v.min_runtime_version, "what its metadata say"]]),
      el("p", { class: "faint" }, "A release of TensorFlow Lite or LiteRT loads the model if it has each operator in its version. Where an operator needs less than its version, gossamer versions --lower writes the model for older releases."),
      table([">count", "operator", ">version", "since", ">needs", "since", "~why"], v.operators.map((o) => [o.count, o.operator + (o.custom ? " (custom)" : ""), o.version, o.release || (o.custom ? "" : "unknown"), o.needed, o.needed_release, o.reason])));
    return null;
  }

  function microcontroller(place) {
    const m = data.micro;
    if (m.error) { place.append(el("h2", {}, "TFLite Micro"), el("p", {}, m.error)); return null; }
    const saved = Object.entries({ better_plan: "with a better plan, which gossamer micro --write-offline-plan writes", in_place: "if operators wrote over their inputs" }).filter(([k]) => m.savings[k]).map(([k, how]) => [bytes(m.savings[k]), how]);
    place.append(cards([[whole(m.minimum_arena_bytes), "bytes of the smallest arena"], [whole(m.head_bytes), "head: tensors while they are alive"], [whole(m.tail_bytes), "tail: what stays"], [whole(m.lower_bound_bytes), "alive at once at most"], [bytes(data.summary.sizes.file), "flash for the model"]]),
      el("div", { class: "two" },
        el("div", {}, el("h2", {}, `Alive at ${m.peak.operator}`), table(["~tensor", ">bytes"], m.peak.buffers.map((b) => [b.name.split(";")[0], whole(b.bytes)])), saved.length ? el("h2", {}, "Could save") : "", saved.length ? pairs(saved) : ""),
        el("div", {}, el("h2", {}, "Tail"), table(["what", ">bytes", ">count"], Object.entries(m.categories).filter(([, c]) => c.used).map(([name, c]) => [name.replaceAll("_", " "), whole(c.used), c.count])), el("h2", {}, "In the firmware"), el("pre", {}, m.registration.join("\n")))));
    return null;
  }

  // ---- the page -------------------------------------------------------------------------------------------------

  const PARTS = { summary: ["Summary", summary], graph: ["Graph", graphPart], memory: ["Memory", memory], profile: ["Profile", profile], roofline: ["Roofline", roofline], tensors: ["Tensors", tensors], versions: ["Versions", versions], micro: ["Microcontroller", microcontroller] };
  const places = {}, redraw = {};
  let current = null;

  /** Show a part; it is made when it is first shown. */
  async function open(name) {
    if (current === name) return;
    current = name;
    const main = document.getElementById("main");
    for (const tab of document.querySelectorAll("[role=tab]")) {
      const mine = tab.dataset.part === name;
      tab.setAttribute("aria-selected", mine);
      tab.tabIndex = mine ? 0 : -1;
    }
    for (const [part, place] of Object.entries(places)) place.hidden = part !== name;
    if (!places[name]) {
      if (name !== "summary") await library();
      if (current !== name || places[name]) return;
      places[name] = el("section", { role: "tabpanel", id: `part-${name}`, "aria-labelledby": `tab-${name}` });
      main.append(places[name]);
      redraw[name] = PARTS[name][1](places[name]);
      stale.delete(name);
    } else if (stale.delete(name)) redraw[name]?.();
    if (location.hash.slice(1) !== name) history.replaceState(null, "", `#${name}`);
  }
  const stale = new Set();

  function theme(dark, keep) {
    root.dataset.theme = dark ? "dark" : "light";
    if (keep) try { localStorage.setItem("theme", root.dataset.theme); } catch { /* a page from a file may have no store */ }
    for (const part of Object.keys(places)) if (part !== current) stale.add(part);
    redraw[current]?.();
  }
  const system = matchMedia("(prefers-color-scheme: dark)");
  let kept = null;
  try { kept = localStorage.getItem("theme"); } catch { /* as above */ }
  theme(kept ? kept === "dark" : system.matches);
  system.addEventListener("change", () => { if (!kept) theme(system.matches); });
  document.getElementById("theme").addEventListener("click", () => { kept = "chosen"; theme(root.dataset.theme !== "dark", true); });

  document.getElementById("title").textContent = data.summary.model.split(/[\\/]/).pop();
  const tabs = document.getElementById("tabs"), order = Object.keys(PARTS);
  tabs.append(...order.map((name) => el("button", { role: "tab", id: `tab-${name}`, "data-part": name, onclick: () => open(name) }, PARTS[name][0])));
  tabs.addEventListener("keydown", (e) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
    if (!step) return;
    const next = order[(order.indexOf(current) + step + order.length) % order.length];
    open(next);
    document.getElementById(`tab-${next}`).focus();
  });
  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.altKey || e.metaKey || /^(INPUT|SELECT)$/.test(e.target.tagName)) return;
    if (e.key === "/") {
      e.preventDefault();
      const part = current === "tensors" ? current : "graph";
      open(part).then(() => document.getElementById(part === "tensors" ? "filter" : "search").focus());
    }
    else if (e.key === "t") document.getElementById("theme").click();
    else if (order[e.key - 1]) open(order[e.key - 1]);
  });
  addEventListener("hashchange", () => { const name = location.hash.slice(1); if (PARTS[name]) open(name); });
  await open(PARTS[location.hash.slice(1)] ? location.hash.slice(1) : "summary");
  requestAnimationFrame(() => setTimeout(() => { root.dataset.ready = performance.now().toFixed(0); setTimeout(library, 200); }));
})();
