"use strict";
// One page, one state: which policy is chosen. Every chart is a function of it; `render` draws them all again.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const { policies, baselines, measures } = data;
  // Plotly reads tags and %{...} in texts: names reach it as `drawn`, with both escaped, and not endless.
  const plain = (text) => [...text].slice(0, 60).join("").replace(/[&<>%{}$]/g, (sign) => `&#${sign.charCodeAt(0)};`);
  for (const named of [...policies, ...baselines, ...measures]) named.drawn = plain(named.name);
  const axes = data.axes.map((index) => ({ ...measures[index], index }));
  const $ = (id) => document.getElementById(id);
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const narrow = () => window.innerWidth < 700;
  let chosen = null;
  let order = { column: null, ascending: false };

  // ---- elements and numbers -------------------------------------------------------------------------------------
  function element(tag, properties = {}, ...children) {
    const made = document.createElement(tag);
    for (const [key, value] of Object.entries(properties)) {
      if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
      else if (key === "style") made.style.cssText = value;
      else if (value !== null && value !== undefined) made.setAttribute(key, value);
    }
    made.append(...children.filter((child) => child !== null));
    return made;
  }

  function number(value, digits) {
    if (value === null || value === undefined) return "–";
    const size = Math.abs(value);
    const places = digits ?? (size >= 1000 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3);
    const text = value.toFixed(places);
    return (Number(text) === 0 ? text.replace("-", "") : text.replace("-", "−"));
  }

  // One number of decimals per column, so that they can be compared at a glance.
  const decimals = measures.map((_, i) => {
    const largest = Math.max(...policies.concat(baselines).map((p) => Math.abs(p.mean[i] ?? 0)));
    return largest >= 1000 ? 0 : largest >= 10 ? 1 : largest >= 1 && measures[i].shift !== 0 ? 2 : 3;
  });
  const show = (value, measure) => number(value, decimals[measure]);
  const interval = (p, i) =>
    p.half[i] === null ? null : `95 % confidence interval ${show(p.mean[i] - p.half[i], i)} to ${show(p.mean[i] + p.half[i], i)}`;
  const known = (values) => values.filter((value) => value !== null);
  const range = (i) => {
    const values = known(policies.map((p) => p.mean[i]));
    return values.length ? [Math.min(...values), Math.max(...values)] : [0, 0];
  };

  // ---- drawing --------------------------------------------------------------------------------------------------
  // Others first, representatives above them, the chosen one on top.
  const layers = () => [...policies].sort((a, b) => rank(a) - rank(b));
  const rank = (p) => (p.id === chosen ? 2 : p.colour ? 1 : 0);
  const stroke = (p) => p.colour ?? colour(p.id === chosen ? "soft" : "faint");
  function tint(shade) { // Plotly knows no color-mix()
    const [r, g, b] = shade[0] === "#" ? [1, 3, 5].map((at) => parseInt(shade.slice(at, at + 2), 16)) : shade.match(/\d+/g);
    return `rgba(${r}, ${g}, ${b}, 0.14)`;
  }
  function look(p) {
    if (p.id === chosen) return { width: 5, opacity: 1 };
    const share = policies.filter((other) => other.colour).length / policies.length;
    const base = p.colour ? { width: 2, opacity: 1 } : { width: 1.75, opacity: Math.max(0.25, 0.7 * share) };
    return chosen === null ? base : { ...base, opacity: (p.colour ? 0.75 : 0.5) * base.opacity };
  }

  function layout(extra) {
    const font = { family: colour("font"), size: 12, color: colour("soft") };
    return {
      font, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", showlegend: false, dragmode: false,
      hovermode: "closest", hoverlabel: { bgcolor: colour("card"), bordercolor: colour("line"),
        font: { family: colour("font"), color: colour("ink"), size: 13 }, align: "left" },
      margin: { l: 54, r: 16, t: 12, b: 44 }, ...extra,
    };
  }
  const cartesian = (title, extra = {}) => ({
    title: { text: title, standoff: 8, font: { size: 13, color: colour("ink") } }, fixedrange: true, zeroline: false,
    gridcolor: colour("line"), linecolor: colour("line"), ticks: "", automargin: true, nticks: 6, ...extra,
  });
  const tooltip = (p) =>
    [`<b>${p.drawn}</b>`, ...axes.map((a) => `${a.drawn}  ${show(p.mean[a.index], a.index)}`)].join("<br>");

  function draw(id, traces, extra) {
    const target = $(id);
    const height = Number((narrow() && target.dataset.narrow) || target.dataset.height);
    const config = { displayModeBar: false, responsive: true };
    const first = !target.classList.contains("js-plotly-plot");
    Plotly.react(target, traces, layout({ height, ...extra }), config);
    if (!first) return;
    target.addEventListener("pointerdown", (down) => { // Plotly covers the page while a button is down
      document.addEventListener("pointerup", (up) => {
        if (Math.hypot(up.clientX - down.clientX, up.clientY - down.clientY) > 8) return;
        const id = nearest(target, up.clientX, up.clientY);
        if (id !== null) setTimeout(() => choose(id)); // after Plotly has dealt with the event
      }, { once: true });
    });
  }

  // Plotly's click event does not come from polar charts with dragging off, so the drawn points are asked themselves.
  function nearest(target, x, y, reach = 20) {
    let found = null;
    target.querySelectorAll(".scatterlayer > .trace").forEach((trace, k) => {
      const id = target.data[k].meta;
      if (id === undefined) return;
      for (const point of trace.querySelectorAll("path.point")) {
        const box = point.getBoundingClientRect();
        const away = Math.hypot(box.x + box.width / 2 - x, box.y + box.height / 2 - y);
        if (away < reach) [found, reach] = [id, away];
      }
    });
    return found;
  }

  function parallel() {
    const height = (p, a) => {
      const [low, high] = range(a.index);
      const value = p.mean[a.index];
      return value === null ? null : high > low ? (value - low) / (high - low) : 0.5;
    };
    const steps = 24; // hidden points along a line make it answer to the mouse between the axes, too
    const traces = layers().map((p) => {
      const x = [], y = [], size = [];
      axes.forEach((a, k) => {
        const here = height(p, a), next = k + 1 < axes.length ? height(p, axes[k + 1]) : null;
        x.push(k); y.push(here); size.push(p.id === chosen ? 9 : 5);
        for (let s = 1; s < steps && next !== null && here !== null; s++) {
          x.push(k + s / steps); y.push(here + (next - here) * (s / steps)); size.push(0);
        }
      });
      const { width, opacity } = look(p);
      return { type: "scatter", mode: "lines+markers", meta: p.id, x, y, opacity, name: p.drawn,
        line: { color: stroke(p), width }, marker: { color: stroke(p), size, opacity: 1, line: { width: 0 } },
        hovertemplate: `${tooltip(p)}<extra></extra>` };
    });
    const label = (k, y, text, anchor, strong) => ({ x: k, y, text, showarrow: false, yanchor: anchor,
      font: { size: strong ? 14 : narrow() ? 10 : 12, color: colour(strong ? "ink" : "soft") } });
    const annotations = axes.flatMap((a, k) => {
      const [low, high] = range(a.index);
      return [label(k, 1.13, a.optimised ? `<b>${a.drawn}</b>` : a.drawn, "middle", true),
        label(k, 1.035, show(high, a.index), "middle"), label(k, -0.04, show(low, a.index), "middle")];
    });
    const shapes = axes.map((_, k) => ({ type: "line", x0: k, x1: k, y0: 0, y1: 1, layer: "below",
      line: { color: colour("faint"), width: 1 } }));
    const pad = narrow() ? 0.35 : 0.3;
    const bare = { visible: false, fixedrange: true };
    draw("parallel", traces, { annotations, shapes, margin: { l: 4, r: 4, t: 4, b: 4 },
      xaxis: { ...bare, range: [-pad, axes.length - 1 + pad] }, yaxis: { ...bare, range: [-0.09, 1.19] } });
  }

  // Each axis runs from its own worst value (near the middle) to 0, the best there is (at the rim).
  function radar() {
    const shifted = (p, a) => (p.mean[a.index] === null ? null : p.mean[a.index] - a.shift);
    const worst = axes.map((a) => Math.min(...known(policies.map((p) => shifted(p, a))), 0));
    const reach = (p, k) => {
      const value = shifted(p, axes[k]);
      return value === null ? null : worst[k] < 0 ? 0.12 + 0.88 * (1 - value / worst[k]) : 1;
    };
    const traces = layers().map((p) => {
      const { width, opacity } = look(p);
      const r = axes.map((_, k) => reach(p, k)), theta = axes.map((_, k) => (360 / axes.length) * k);
      return { type: "scatterpolar", mode: "lines+markers", meta: p.id, r: [...r, r[0]], theta: [...theta, theta[0]],
        opacity, name: p.drawn, line: { color: stroke(p), width }, marker: { color: stroke(p), size: 5 },
        fill: p.id === chosen ? "toself" : "none", fillcolor: tint(stroke(p)),
        hovertemplate: `${tooltip(p)}<extra></extra>` };
    });
    const ticktext = axes.map((a, k) =>
      `${a.optimised ? `<b>${a.drawn}</b>` : a.drawn}<br><span style="font-size:11px">${show(worst[k], a.index)}</span>`);
    draw("radar", traces, { margin: { l: 50, r: 50, t: 44, b: 44 }, polar: { bgcolor: "rgba(0,0,0,0)",
      radialaxis: { range: [0, 1.02], showticklabels: false, ticks: "", gridcolor: colour("line"), showline: false,
        tickvals: [0.12, 0.34, 0.56, 0.78, 1] },
      angularaxis: { rotation: 90, direction: "counterclockwise", tickvals: axes.map((_, k) => (360 / axes.length) * k),
        ticktext, gridcolor: colour("line"), linecolor: colour("faint"), ticks: "", tickfont: { size: 14, color: colour("ink") } } } });
  }

  const objectives = axes.filter((a) => data.objectives.includes(a.name));
  const pairs = objectives.flatMap((a, i) => objectives.slice(i + 1).map((b) => [a, b]));
  function pair([a, b], id) {
    const point = (p, marker, extra) => ({ type: "scatter", mode: "markers", x: [p.mean[a.index]], y: [p.mean[b.index]],
      marker, hovertemplate: `${tooltip(p)}<extra></extra>`, ...extra });
    const cross = (p, measure, width) => ({ type: "data", array: [p.half[measure.index] ?? 0], thickness: width, width: 0,
      color: stroke(p) });
    const rules = baselines.map((p) => point(p, { symbol: "diamond", size: 8, color: colour("card"),
      line: { color: colour("soft"), width: 1.5 } }, { mode: "markers+text", text: [p.drawn], textposition: "top center",
      cliponaxis: false, textfont: { size: 10, color: colour("soft") } }));
    const learned = layers().map((p) => {
      const { opacity } = look(p), picked = p.id === chosen;
      return point(p, { size: picked ? 15 : p.colour ? 9 : 7, color: stroke(p), opacity: 1,
        line: { color: picked ? colour("ink") : colour("card"), width: picked ? 2.5 : 1 } },
        { meta: p.id, opacity: Math.max(opacity, 0.4), error_x: cross(p, a, picked ? 2 : 1), error_y: cross(p, b, picked ? 2 : 1) });
    });
    draw(id, [...rules, ...learned], { xaxis: cartesian(a.drawn), yaxis: cartesian(b.drawn) });
  }

  function curve({ title, series }, id) {
    const traces = series.map(({ name, context, x, y }) => ({ type: "scatter", mode: "lines", name: plain(name), x, y,
      line: { width: 2, color: colour(context ? "faint" : "ink"), dash: context ? "dot" : "solid" },
      hovertemplate: `%{y:.4g} after %{x:,} steps<extra>${plain(name)}</extra>` }));
    draw(id, traces, { showlegend: series.length > 1, hovermode: "x",
      legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom", font: { size: 12 } },
      margin: { l: 54, r: 16, t: series.length > 1 ? 26 : 12, b: 44 },
      xaxis: cartesian("training steps", { nticks: 5 }), yaxis: cartesian("") });
  }

  // ---- table ----------------------------------------------------------------------------------------------------
  const command = ({ returns, horizon }) =>
    `${Object.values(returns).map((value) => number(value)).join(", ")}; ${number(horizon, 0)}`;

  function table() {
    const columns = [
      ...measures.flatMap((m, i) => {
        const figures = { text: m.label, optimised: m.optimised && m.label === m.name, title: m.words,
          of: (p) => p.mean[i], cell: (p) => figure(p, i), note: (p) => interval(p, i) };
        const luck = { text: "chance", title: `size of ${m.name} from luck alone, for a policy blind to the groups`,
          of: (p) => p.chance[i], cell: (p) => element("small", {}, show(p.chance[i], i)) };
        return m.optimised && known(policies.map((p) => p.chance[i])).length ? [figures, luck] : [figures];
      }),
      { text: "steps", title: "mean length of an episode", of: (p) => p.length, cell: (p) => number(p.length, 0) },
    ];
    const figure = (p, i) => {
      const best = p.id !== undefined && p.mean[i] !== null && p.mean[i] === range(i)[1];
      const margin = measures[i].optimised && p.half[i] !== null ? ` ± ${show(p.half[i], i)}` : "";
      return element("span", {}, element(best ? "b" : "span", {}, show(p.mean[i], i)), element("small", {}, margin));
    };
    const commands = policies.find((p) => p.command)?.command;
    const asked = commands ? `${Object.keys(commands.returns).join(", ")}; steps` : "";
    const head = element("tr", {}, element("th", { scope: "col" }, "policy"),
      ...columns.map((c, k) => element("th", { scope: "col", class: c.optimised ? "optimised" : null, title: c.title,
        "aria-sort": order.column === k ? (order.ascending ? "ascending" : "descending") : null },
        element("button", { onclick: () => { order = { column: k, ascending: order.column === k && !order.ascending }; table(); } }, c.text))),
      commands ? element("th", { scope: "col", title: `the command that the policy was given (${asked})` }, "asked for") : null);
    const sorted = [...policies];
    if (order.column !== null) sorted.sort((p, q) => {
      const { of } = columns[order.column];
      return ((of(q) ?? -Infinity) - (of(p) ?? -Infinity)) * (order.ascending ? -1 : 1);
    });
    const row = (p, learned) => element("tr", learned ? { "data-policy": p.id, tabindex: 0, role: "row",
      "aria-selected": p.id === chosen, onclick: () => choose(p.id),
      onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(p.id); } } } : {},
      element("td", {}, element("span", { class: "dot", style: `--dot:${learned ? stroke(p) : "transparent"}` }), p.name),
      ...columns.map((c) => element("td", { title: c.note?.(p) }, c.cell(p))),
      commands ? element("td", {}, element("small", {}, p.command ? command(p.command) : "")) : null);
    const rules = baselines.length ? element("tbody", { class: "rules" },
      element("tr", {}, element("th", { colspan: 99 }, "Simple rules, for comparison")), ...baselines.map((p) => row(p, false))) : null;
    $("table").replaceChildren(...[element("thead", {}, head),
      element("tbody", { class: "policies" }, ...sorted.map((p) => row(p, true))), rules].filter((part) => part !== null));
  }

  // ---- the chosen policy ----------------------------------------------------------------------------------------
  function snippet(title, text, kind = null) {
    const copy = element("button", { type: "button", onclick: () => navigator.clipboard?.writeText(text).then(() => {
      copy.textContent = "copied"; setTimeout(() => { copy.textContent = "copy"; }, 1500); }) }, "copy");
    return [element("h3", {}, title), element("div", { class: "snippet" }, element("pre", { class: kind }, text), copy)];
  }

  function panel() {
    const target = $("chosen"), p = policies.find((policy) => policy.id === chosen);
    if (!p) return;
    target.style.setProperty("--dot", stroke(p));
    const bars = axes.map((a) => {
      const [low, high] = range(a.index), value = p.mean[a.index];
      const share = value === null ? 0 : high > low ? (value - low) / (high - low) : 1;
      return element("div", { class: "bar", title: a.words }, element("b", { class: a.optimised ? "optimised" : null }, a.name),
        element("div", { class: "track" }, element("i", { style: `width:${Math.max(2, 100 * share).toFixed(1)}%` })),
        element("span", { class: "number" }, show(value, a.index)));
    });
    const about = `Mean of ${p.episodes} evaluation episodes of ${number(p.length, 0)} steps, ` +
      `${p.deterministic ? "the most probable action each time" : "actions drawn at random from the policy"}. ` +
      "A full bar is the best of all policies, an empty one the worst.";
    target.replaceChildren(element("h2", {}, element("span", { class: "dot" }), p.name), element("p", { class: "hint" }, about),
      element("div", { class: "bars" }, ...bars),
      ...(p.use ? [...snippet("Run it", p.use.shell, "shell"), ...snippet("In Python", p.use.python)] : []),
      ...(!p.use && p.command ? snippet("Asked for", command(p.command)) : []));
  }

  // ---- state ----------------------------------------------------------------------------------------------------
  function render() {
    parallel(); radar();
    pairs.forEach((both, i) => pair(both, `pair-${i}`));
    table(); panel();
  }
  function choose(id) {
    chosen = id;
    history.replaceState(null, "", `#policy=${id}`);
    render();
  }
  function fromAddress() {
    const match = /policy=(\d+)/.exec(location.hash);
    return policies.some((p) => match && p.id === Number(match[1])) ? Number(match[1]) : null;
  }

  function page() {
    $("title").textContent = data.title;
    $("lead").textContent = data.lead;
    const facts = [[policies.length, policies.length === 1 ? "policy" : "policies"], [data.objectives.length, data.objectives.length === 1 ? "objective" : "objectives"],
      [baselines.length, "rules beside them"], [policies[0].episodes, "evaluation episodes each"]];
    $("facts").append(...facts.filter(([count]) => count).map(([count, what]) => element("li", {}, element("b", {}, String(count)), ` ${what}`)));
    $("words").append(...axes.flatMap((a) => [element("dt", {}, a.name, element("span", {}, ` ${a.words}`)), element("dd", {}, a.meaning)]));
    const anchors = [["rgb(228, 26, 28)", "good performance"], ["rgb(77, 175, 74)", "fair to groups"], ["rgb(55, 126, 184)", "fair to individuals"], ["var(--faint)", "the other policies"]];
    $("key").append(...anchors.map(([shade, what]) => element("span", {}, element("i", { class: "dot", style: `--dot:${shade}` }), what)));
    const shifted = axes.find((a) => a.shift);
    $("radar-hint").textContent = "The further out, the better: the rim is 0, the best there is. The number at each axis is its middle." +
      (shifted ? ` For ${shifted.name}, 0 stands for the best mean reached by any policy or rule (${show(shifted.shift, shifted.index)}).` : "");
    $("chance-hint").textContent = policies.some((p) => known(p.chance).length) ? "Chance: what a policy blind to the groups has on average, from luck alone." : "";
    const boxes = (list, name) => list.map((item, i) => element("figure", { style: "margin:0" },
      item.title ? element("figcaption", { class: "hint" }, item.title) : "", element("div", { class: "chart", id: `${name}-${i}`, "data-height": 300 })));
    $("pairs").append(...boxes(pairs, "pair"));
    $("pairs-card").hidden = !pairs.length;
    $("curves").append(...boxes(data.curves, "curve"));
    $("curves-card").hidden = !data.curves.length;
    $("made").append(...data.made.flatMap(([key, value]) => [element("dt", {}, key), element("dd", {}, value)]));
    $("made-card").hidden = !data.made.length;
    chosen = fromAddress() ?? policies[0].id;
  }
  const curves = () => data.curves.forEach((item, i) => curve(item, `curve-${i}`));

  page(); render(); curves();
  window.addEventListener("hashchange", () => { chosen = fromAddress() ?? chosen; render(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { render(); curves(); });
  let wasNarrow = narrow();
  window.addEventListener("resize", () => { if (narrow() !== wasNarrow) { wasNarrow = narrow(); render(); } });
})();
