"use strict";
// One page, one state: which policy is chosen, which two are pinned, what is insisted on, names or codes. Every part of
// the page is a function of the state; `render` draws them all again, and the address keeps it.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const { policies, baselines, measures } = data;
  const byId = new Map(policies.map((p) => [p.id, p]));
  const axes = data.axes;
  const goals = axes.filter((i) => measures[i].optimised);
  const $ = (id) => document.getElementById(id);
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const narrow = () => window.innerWidth < 700;
  const state = { chosen: null, pins: [], least: {}, codes: false };
  let order = { column: null, ascending: false };

  // ---- elements, numbers and names ------------------------------------------------------------------------------
  function element(tag, properties = {}, ...children) {
    const made = document.createElement(tag);
    for (const [key, value] of Object.entries(properties)) {
      if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
      else if (key === "style") made.style.cssText = value;
      else if (value !== null && value !== undefined) made.setAttribute(key, value);
    }
    made.append(...children.flat().filter((child) => child !== null && child !== undefined));
    return made;
  }
  const known = (values) => values.filter((value) => value !== null && value !== undefined);
  const formats = []; // by decimals; toLocaleString would make one for every number
  function number(value, places) {
    if (value === null || value === undefined) return "–";
    formats[places] ??= new Intl.NumberFormat("en-US", { minimumFractionDigits: places, maximumFractionDigits: places });
    const text = formats[places].format(value);
    return Number(text) === 0 ? text.replace("-", "") : text.replace("-", "−");
  }
  // One number of decimals per measure, so that figures can be compared at a glance.
  const decimals = measures.map((m, i) => {
    const largest = Math.max(0, ...[...policies, ...baselines].map((p) => Math.abs(p.mean[i] ?? 0)));
    const tiny = largest > 1e-9 ? 1 - Math.floor(Math.log10(largest)) : 0; // two digits of the largest
    return largest >= 1000 ? 0 : largest >= 10 ? 1 : largest >= 1 && !m.zero_is_fair ? 2 : Math.max(3, tiny);
  });
  const show = (value, i) => number(value, decimals[i]);
  const percent = (share) => `${number(100 * share, 1)} %`;
  const ends = (p, i) => [p.mean[i] - p.half[i], p.mean[i] + p.half[i]];
  const interval = (p, i) => (p.half[i] === null ? null : `95 % confidence interval ${ends(p, i).map((end) => show(end, i)).join(" to ")}`);
  const name = (i) => (state.codes ? measures[i].label : measures[i].title);
  const wish = { higher: "more is better", lower: "less is better", zero: "0 is best" };
  const better = (m) => (m.zero_is_fair ? "0 is fair, below is unfair" : wish[m.better] ?? "");
  // Plotly reads tags and %{...} in texts: names reach it with both escaped, and not endless.
  const plain = (text) => [...text].slice(0, 60).join("").replace(/[&<>%{}$]/g, (sign) => `&#${sign.charCodeAt(0)};`);
  const SHORT = 12, LONG = 20; // letters of a line
  const lines = (i, letters) => {
    const found = [""];
    for (const word of [...name(i)].slice(0, 60).join("").split(" ")) {
      if (found.at(-1) && found.at(-1).length + word.length > letters) found.push("");
      found[found.length - 1] += `${found.at(-1) ? " " : ""}${word}`;
    }
    return found;
  };
  const longest = (letters) => Math.max(6, ...axes.flatMap((i) => lines(i, letters)).map((line) => line.length)); // numbers have 6
  const deepest = () => Math.max(...axes.map((i) => lines(i, SHORT).length));
  const drawn = (i, letters = SHORT) => {
    const text = lines(i, letters).map(plain).join("<br>");
    return measures[i].optimised ? `<b>${text}</b>` : text;
  };
  const value = (goodness, i) => (measures[i].better === "higher" ? goodness : -goodness);

  // Half the interval of the difference of two policies; null where that of one of them is unknown.
  const halfApart = (p, q, i) => (p.half[i] === null || q.half[i] === null ? null : Math.hypot(p.half[i], q.half[i]));
  const differ = (p, q, i) => halfApart(p, q, i) !== null && Math.abs(p.good[i] - q.good[i]) > halfApart(p, q, i);

  // ---- what is shown --------------------------------------------------------------------------------------------
  const fits = (p) => Object.entries(state.least).every(([i, least]) => p.good[i] !== null && p.good[i] >= least);
  const shown = () => policies.filter(fits);
  const few = (list) => list.filter((p) => p.colour || p.roles.length || p.id === state.chosen || state.pins.includes(p.id));
  const rank = (p) => (p.id === state.chosen ? 3 : state.pins.includes(p.id) ? 2 : p.colour ? 1 : 0);
  const stroke = (p) => p.colour ?? colour(rank(p) ? "soft" : "faint");
  const width = (p) => (p.id === state.chosen ? 5 : state.pins.includes(p.id) ? 3.5 : 2);
  const tint = (shade) => { // Plotly knows no color-mix()
    const [r, g, b] = shade[0] === "#" ? [1, 3, 5].map((at) => parseInt(shade.slice(at, at + 2), 16)) : shade.match(/\d+/g);
    return `rgba(${r}, ${g}, ${b}, 0.14)`;
  };

  // ---- drawing --------------------------------------------------------------------------------------------------
  const layout = (extra) => ({
    font: { family: colour("font"), size: 12, color: colour("soft") }, paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)", showlegend: false, dragmode: false, hovermode: "closest",
    hoverlabel: { bgcolor: colour("card"), bordercolor: colour("line"), align: "left",
      font: { family: colour("font"), color: colour("ink"), size: 13 } },
    margin: { l: 54, r: 16, t: 12, b: 44 }, ...extra,
  });
  const cartesian = (title, extra = {}) => ({
    title: { text: title, standoff: 8, font: { size: 13, color: colour("ink") } }, fixedrange: true, zeroline: false,
    gridcolor: colour("line"), linecolor: colour("line"), ticks: "", automargin: true, nticks: 6, ...extra,
  });
  const tooltips = { true: new Map(), false: new Map() }; // with codes and with names: every pair of measures asks for them
  function tooltip(p) {
    const written = tooltips[state.codes];
    if (!written.has(p))
      written.set(p, [`<b>${plain(p.name)}</b>`, ...axes.map((i) => `${plain(name(i))}  ${show(p.mean[i], i)}`)].join("<br>"));
    return written.get(p);
  }
  const tall = (target) => Number((narrow() && target.dataset.narrow) || target.dataset.height);
  function draw(id, traces, extra) {
    const target = $(id), height = tall(target);
    const first = !target.classList.contains("js-plotly-plot");
    const width = document.documentElement.classList.contains("paper") ? target.clientWidth : undefined; // else by itself
    if (first) {
      const named = [target.closest(".card").querySelector("h2"), target.parentElement.querySelector("figcaption")];
      target.setAttribute("role", "img");
      target.setAttribute("aria-label", named.map((part) => part?.textContent).filter(Boolean).join(": "));
    }
    Plotly.react(target, traces, layout({ height, width, ...extra }), { displayModeBar: false, responsive: true });
    return first;
  }

  // Every line runs from axis to axis; only those with a name of their own are traces of their own, so a thousand are fast.
  const MARGIN = 4, NAMES = 1.09; // the axes run from 0 to 1, their names begin above them
  const turned = () => $("parallel").clientWidth / axes.length < 8.5 * longest(SHORT);
  const room = () => {
    const names = turned() ? 6.5 * longest(LONG) + 8 : 17 * deepest() + 8;
    const share = Math.min(0.4, names / (tall($("parallel")) - 2 * MARGIN));
    return [-0.14, Math.max(1.26, (NAMES + 0.14 * share) / (1 - share))];
  };
  const height = (p, i) => {
    const [low, high] = measures[i].span;
    return p.good[i] === null ? null : high > low ? (p.good[i] - low) / (high - low) : 0.5;
  };
  const pad = () => 0.45;
  function parallel() {
    if (policies.length < 2) return;
    const list = shown(), named = few(list).sort((p, q) => rank(p) - rank(q));
    const others = list.filter((p) => !named.includes(p));
    const line = (p) => ({ x: axes.map((_, k) => k), y: axes.map((i) => height(p, i)) });
    const many = { x: others.flatMap(() => [...axes.keys(), null]), y: others.flatMap((p) => [...line(p).y, null]) };
    const traces = [{ ...many, type: "scatter", mode: "lines", hoverinfo: "skip", line: { color: colour("faint"), width: 1.5 },
      opacity: Math.max(0.25, Math.min(0.8, 40 / (others.length + 1))) },
    ...named.map((p) => ({ ...line(p), type: "scatter", mode: "lines+markers", hoverinfo: "skip",
      opacity: state.chosen === null || rank(p) > 1 ? 1 : 0.75,
      line: { color: stroke(p), width: width(p) }, marker: { color: stroke(p), size: p.id === state.chosen ? 9 : 5 } })),
    { x: [], y: [], type: "scatter", mode: "lines+markers", hoverinfo: "skip", line: { color: colour("ink"), width: 4 },
      marker: { color: colour("ink"), size: 7 } }];
    const steep = turned();
    const label = (k, y, text, anchor, strong) => ({ x: k, y, text, showarrow: false, yanchor: anchor, textangle: strong && steep ? -90 : 0,
      font: { size: steep ? 10 : strong ? 13 : 12, color: colour(strong ? "ink" : "soft") } });
    const annotations = axes.flatMap((i, k) => [label(k, NAMES, drawn(i, steep ? LONG : SHORT), "bottom", true),
      label(k, 1.03, show(value(measures[i].span[1], i), i), "middle"),
      label(k, -0.04, show(value(measures[i].span[0], i), i), "middle")]);
    const shapes = axes.map((_, k) => ({ type: "line", x0: k, x1: k, y0: 0, y1: 1, layer: "below",
      line: { color: colour("faint"), width: 1 } }));
    const bare = { visible: false, fixedrange: true };
    const margin = { l: MARGIN, r: MARGIN, t: MARGIN, b: MARGIN };
    const first = draw("parallel", traces, { annotations, shapes, margin,
      xaxis: { ...bare, range: [-pad(), axes.length - 1 + pad()] }, yaxis: { ...bare, range: room() } });
    if (!first) return;
    const target = $("parallel"), tip = element("div", { class: "tip", hidden: "" });
    target.append(tip);
    let lit = null;
    const light = (p, event) => {
      tip.hidden = !p;
      if (p) {
        tip.replaceChildren(element("b", {}, p.name), ...axes.map((i) => element("div", {}, `${name(i)}  ${show(p.mean[i], i)}`)));
        const box = target.getBoundingClientRect(), x = event.clientX - box.x, y = event.clientY - box.y;
        tip.style.cssText = `${event.clientY > window.innerHeight / 2 ? `bottom:${box.height - y + 10}px` : `top:${y + 14}px`};${x > box.width / 2 ? `right:${box.width - x + 10}px` : `left:${x + 10}px`}`;
      }
      if (p === lit) return;
      lit = p;
      Plotly.restyle(target, { x: [p ? axes.map((_, k) => k) : []], y: [p ? axes.map((i) => height(p, i)) : []] }, [target.data.length - 1]);
    };
    target.addEventListener("pointermove", (event) => light(nearestLine(target, event), event));
    target.addEventListener("pointerleave", () => light(null));
    target.addEventListener("click", (event) => { const p = nearestLine(target, event); if (p) choose(p.id); });
  }
  function nearestLine(target, { clientX, clientY }) {
    const box = target.getBoundingClientRect(), across = axes.length - 1 + 2 * pad();
    const x = ((clientX - box.x - MARGIN) / (box.width - 2 * MARGIN)) * across - pad();
    const tall = box.height - 2 * MARGIN, [low, high] = room(), y = high - ((clientY - box.y - MARGIN) / tall) * (high - low);
    const k = Math.max(0, Math.min(axes.length - 2, Math.floor(x))), part = Math.max(0, Math.min(1, x - k));
    let found = null, reach = (16 / tall) * (high - low);
    for (const p of shown()) {
      const a = height(p, axes[k]), b = axes.length > 1 ? height(p, axes[k + 1]) : a;
      if (a === null || b === null) continue;
      const away = Math.abs(a + (b - a) * part - y) - (rank(p) ? reach / 50 : 0);
      if (away < reach) [found, reach] = [p, away];
    }
    return found;
  }

  // Each axis runs from its own worst value (near the middle) to the best there is (at the rim).
  function radar() {
    if (policies.length < 2 || axes.length < 3) return;
    const below = (p, i) => (p.good[i] === null ? null : p.good[i] - measures[i].ideal);
    const worst = axes.map((i) => Math.min(0, ...known(policies.map((p) => below(p, i)))));
    const reach = (p, k) => {
      const away = below(p, axes[k]);
      return away === null ? null : worst[k] < 0 ? 0.12 + 0.88 * (1 - away / worst[k]) : 1;
    };
    const angle = (k) => (360 / axes.length) * k;
    const list = shown(), drawnOnes = (list.length > 40 ? few(list) : list).sort((p, q) => rank(p) - rank(q));
    const traces = drawnOnes.map((p) => ({ type: "scatterpolar", mode: "lines+markers",
      r: [...axes.keys(), 0].map((k) => reach(p, k)), theta: [...axes.keys(), 0].map(angle), hovertemplate: `${tooltip(p)}<extra></extra>`,
      opacity: rank(p) > 1 || state.chosen === null ? 1 : p.colour ? 0.7 : 0.35, line: { color: stroke(p), width: width(p) },
      marker: { color: stroke(p), size: 5 }, fill: p.id === state.chosen ? "toself" : "none", fillcolor: tint(stroke(p)) }));
    const ticktext = axes.map((i, k) => `${drawn(i)}<br><span style="font-size:11px">${show(value(worst[k] + measures[i].ideal, i), i)}</span>`);
    const size = narrow() ? 10 : 12; // room for a name and the number below it
    const above = 1.35 * size * (deepest() + 1) + 10, beside = 0.58 * size * longest(SHORT) + 6;
    draw("radar", traces, { margin: { l: beside, r: beside, t: above, b: above }, polar: { bgcolor: "rgba(0,0,0,0)",
      radialaxis: { range: [0, 1.02], showticklabels: false, ticks: "", gridcolor: colour("line"), showline: false,
        tickvals: [0.12, 0.34, 0.56, 0.78, 1] },
      angularaxis: { rotation: 90, direction: "counterclockwise", tickvals: axes.map((_, k) => angle(k)), ticktext,
        gridcolor: colour("line"), linecolor: colour("faint"), ticks: "", tickfont: { size, color: colour("ink") } } } });
  }

  const pairs = goals.flatMap((a, k) => goals.slice(k + 1).map((b) => [a, b]));
  function pair([a, b], id) {
    const points = (list, marker, extra = {}) => ({ type: "scatter", mode: "markers", x: list.map((p) => p.mean[a]), y: list.map((p) => p.mean[b]),
      customdata: list.map((p) => p.id ?? null), text: list.map(tooltip), hovertemplate: "%{text}<extra></extra>", marker, ...extra });
    const cross = (list, i, shade, thickness) => ({ type: "data", array: list.map((p) => p.half[i] ?? 0), width: 0, color: shade, thickness });
    const list = shown(), named = few(list).sort((p, q) => rank(p) - rank(q)), others = list.filter((p) => !named.includes(p));
    const place = (p) => `${show(p.mean[a], a)} ${show(p.mean[b], b)}`;
    const margin = { l: 72, r: 16, t: 12, b: 52 }; // with less, Plotly draws all points again to make room
    const told = baselines.map((p) => { // those at one place are named together
      const here = baselines.filter((q) => place(q) === place(p));
      return here[0] === p ? here.map((q) => plain(q.name)).join("<br>") : "";
    });
    const rules = points(baselines, { symbol: "diamond", size: 8, color: colour("card"), line: { color: colour("soft"), width: 1.5 } },
      { mode: "markers+text", text: told, hovertext: baselines.map((p) => plain(p.name)), textposition: "top center", cliponaxis: false,
        hovertemplate: "%{hovertext}<extra></extra>", textfont: { size: 10, color: colour("soft") } });
    const faint = colour("faint"), crowd = others.length > 200; // the crosses of a thousand are slow to draw, and a blot
    const crosses = crowd ? {} : { error_x: cross(others, a, faint, 1), error_y: cross(others, b, faint, 1) };
    const traces = [rules, points(others, { size: crowd ? 4 : 7, color: faint }, { opacity: 0.5, ...crosses }),
      ...named.map((p) => {
        const picked = p.id === state.chosen, thickness = picked ? 2 : 1;
        return points([p], { size: picked ? 15 : 9, color: stroke(p), line: { color: colour(picked ? "ink" : "card"), width: picked ? 2.5 : 1 } },
          { error_x: cross([p], a, stroke(p), thickness), error_y: cross([p], b, stroke(p), thickness) });
      })];
    if (draw(id, traces, { margin, xaxis: cartesian(plain(name(a))), yaxis: cartesian(plain(name(b))) }))
      $(id).on("plotly_click", ({ points: [point] }) => { if (point.customdata !== null) choose(point.customdata); });
  }

  function curve({ title, series }, id) {
    const traces = series.map(({ name: label, context, x, y }) => ({ type: "scatter", mode: x.length > 1 ? "lines" : "markers", name: plain(label), x, y,
      line: { width: 2, color: colour(context ? "faint" : "ink"), dash: context ? "dot" : "solid" },
      hovertemplate: `%{y:.4g} after %{x:,} steps<extra>${plain(label)}</extra>` }));
    draw(id, traces, { showlegend: series.length > 1, hovermode: "x",
      legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom", font: { size: 12 } },
      margin: { l: 54, r: 16, t: series.length > 1 ? 26 : 12, b: 44 },
      xaxis: cartesian("training steps", { nticks: 5 }), yaxis: cartesian("") });
  }

  // ---- who gets the favourable decision -------------------------------------------------------------------------
  const rate = (share) => (share === null ? "–" : element("span", { title: share[1] === null ? null : `95 % confidence interval ${percent(share[1])} to ${percent(share[2])}` },
    percent(share[0]), share[1] === null ? "" : element("small", {}, ` (${percent(share[1])} to ${percent(share[2])})`)));
  function groups() {
    const p = byId.get(state.chosen), alone = policies.length < 2, counted = (list) => list.filter((q) => q.groups.length);
    const rules = baselines.filter((b) => alone || b.closest), beside = counted([p, ...few(shown()).filter((q) => q !== p && q.roles.length), ...rules]);
    const others = counted(baselines.filter((b) => !rules.includes(b)));
    $("groups-card").hidden = !beside.length;
    if (!beside.length) return;
    const all = [...beside, ...others].flatMap((q) => q.groups.flatMap((attribute) => attribute.groups));
    const unknown = all.some((g) => ["known", "known otherwise"].some((key) => g.rates[key] && g.rates[key][0] < 1));
    const selective = unknown && all.some((g) => g.rates.deserving || g.rates.undeserving);
    const who = data.deserving ? ` (${data.deserving})` : "";
    const titles = { favourable: "favourable", deserving: `${selective ? "of those known to have deserved it" : "of those who deserved it"}${who}`,
      undeserving: selective ? "of those known not to have" : "of those who did not",
      known: "outcome known after it", "known otherwise": "outcome known otherwise" };
    const columns = Object.keys(titles).filter((key) => unknown || !key.startsWith("known"));
    const head = ["group", "decisions", ...columns.map((key) => titles[key])];
    const rows = (q) => [element("tr", { "aria-selected": q === p }, element("th", { colspan: 99, scope: "rowgroup" },
      element("span", {}, q.id === undefined ? `rule: ${q.name}` : q.name, q.roles?.length ? element("small", {}, ` ${q.roles.join(", ")}`) : ""))),
    ...q.groups.flatMap((attribute) => attribute.groups.map((g) => element("tr", { "aria-selected": q === p },
      element("td", {}, g.name), element("td", {}, number(g.decisions, 0)), ...columns.map((key) => element("td", {}, rate(g.rates[key]))))))];
    const told = (list) => element("div", { class: "scroll" }, element("table", { class: "rates" },
      element("thead", {}, element("tr", {}, head.map((text) => element("th", { scope: "col" }, text)))), element("tbody", {}, list.flatMap(rows))));
    $("groups").replaceChildren(
      ...p.groups.filter((attribute) => attribute.sentence).map((attribute) =>
        element("p", { class: "sentence" }, element("small", {}, `${p.name}: `), attribute.sentence)),
      ...rules.filter(() => !alone).flatMap((r) => r.groups.filter((attribute) => attribute.sentence).map((attribute) =>
        element("p", { class: "hint" }, `The rule “${r.name}”: ${attribute.sentence}`))),
      selective ? element("p", { class: "hint" }, "Not every outcome is known. The shares of those who deserved the decision and of those who did not, " +
        "and fairness figures about them, count known outcomes only. If outcomes are known after favourable decisions only, both shares are 100 % whatever the policy does.") : "",
      known(p.chance).length ? element("p", { class: "hint" }, "These shares count all episodes together. A fairness figure further below is a mean over episodes. A single episode has fewer people, so that gaps are larger by chance: " +
        "compare it with its own chance in the table.") : "",
      told(beside), others.length ? element("details", { id: "other-rules" }, element("summary", {}, others.length > 1 ? `The other ${others.length} simple rules` : "The other simple rule"), told(others)) : "");
  }

  // ---- a short list, and what is insisted on --------------------------------------------------------------------
  const figures = (p, list) => element("dl", {}, list.flatMap((i) => [element("dt", {}, name(i)),
    element("dd", { title: interval(p, i) }, show(p.mean[i], i), p.half[i] === null ? "" : element("small", {}, ` ± ${show(p.half[i], i)}`))]));
  function shortList() {
    const list = shown().filter((p) => p.roles.length), rule = baselines.find((b) => b.closest);
    $("short-card").hidden = policies.length < 2;
    const card = (p) => element("button", { type: "button", "data-short": p.id, "aria-pressed": p.id === state.chosen, style: `--dot:${stroke(p)}`, onclick: () => choose(p.id) },
      element("span", { class: "role" }, element("i", { class: "dot" }), p.roles.join(", ")), element("b", {}, p.name), figures(p, goals));
    $("short").replaceChildren(...list.map(card),
      ...(rule ? [element("div", { class: "rule" }, element("span", { class: "role" }, "simple rule that comes closest"), element("b", {}, rule.name), figures(rule, goals))] : []));
  }
  const STEPS = 1000;
  function sliders() {
    $("tools-card").hidden = policies.length < 2;
    $("sliders").replaceChildren(...goals.map((i) => {
      const values = known(policies.map((p) => p.good[i])), low = Math.min(...values), high = Math.max(...values);
      const at = state.least[i] === undefined ? 0 : Math.round((STEPS * (state.least[i] - low)) / (high - low || 1));
      const told = element("output", {}, limit(i));
      return element("label", {}, element("span", {}, name(i)), element("input", { type: "range", min: 0, max: STEPS, value: at, "data-goal": measures[i].name,
        "aria-label": `least ${measures[i].title}`, "aria-valuetext": limit(i), oninput: (event) => {
          const part = Number(event.target.value) / STEPS;
          if (part === 0) delete state.least[i];
          else state.least[i] = low + part * (high - low) - 1e-12 * Math.abs(high - low);
          told.textContent = limit(i);
          event.target.setAttribute("aria-valuetext", limit(i));
          later();
        } }), told);
    }));
  }
  const limit = (i) => (state.least[i] === undefined ? "any" : `at ${measures[i].better === "higher" ? "least" : "most"} ${show(value(state.least[i], i), i)}`);
  let waiting = null;
  const later = () => { waiting ??= requestAnimationFrame(() => { waiting = null; remember(); render(); }); };

  // ---- the chosen policy ----------------------------------------------------------------------------------------
  function snippet(title, text, kind = null) {
    const copy = element("button", { type: "button", onclick: () => copied(copy, text) }, "copy");
    return [element("h3", {}, title), element("div", { class: "snippet" }, element("pre", { class: kind }, text), copy)];
  }
  const copied = (button, text) => navigator.clipboard?.writeText(text).then(() => {
    const before = button.textContent;
    button.textContent = "copied";
    setTimeout(() => { button.textContent = before; }, 1500);
  });
  const command = ({ returns, horizon }) => `${Object.values(returns).map((v) => number(v, 2)).join(", ")}; ${number(horizon, 0)}`;
  function strip(p, i) { // over all policies and rules, the best on the right: the policy with its interval, the rules as ticks
    const [low, high] = measures[i].reach;
    const at = (good) => (high > low ? 100 * Math.max(0, Math.min(1, (good - low) / (high - low))) : 50);
    const bar = p.good[i] === null ? null : element("i", { class: "interval", style: `left:${at(p.good[i] - (p.half[i] ?? 0))}%;right:${100 - at(p.good[i] + (p.half[i] ?? 0))}%` });
    return element("div", { class: "bar", title: `${measures[i].title}: ${better(measures[i])}` },
      element("span", { class: measures[i].optimised ? "optimised" : null }, name(i)),
      element("div", { class: "track" }, bar,
        baselines.filter((b) => b.good[i] !== null).map((b) => element("i", { class: "tick", title: `${b.name}: ${show(b.mean[i], i)}`, style: `left:${at(b.good[i])}%` })),
        p.good[i] === null ? null : element("i", { class: "dot", style: `left:${at(p.good[i])}%` })),
      element("span", { class: "number" }, show(p.mean[i], i)));
  }
  const beats = (who, many) => `In ${goals.map(name).join(", ")}, ${who} ${many ? "are" : "is"} better${goals.length > 1 ? " in something and worse in nothing" : ""}.`;
  function panel() {
    const p = byId.get(state.chosen), pinned = state.pins.includes(p.id);
    const alike = shown().filter((q) => q !== p && goals.every((i) => halfApart(p, q, i) !== null && !differ(p, q, i))).map((q) => q.name);
    const notes = [
      p.beaten.length ? beats(`the rule${p.beaten.length > 1 ? "s" : ""} ${p.beaten.map((rule) => `“${rule}”`).join(", ")}`, p.beaten.length > 1) : null,
      ...p.dominated.slice(0, 1).map((other) => beats(other, false)),
      alike.length ? `In ${goals.map(name).join(", ")}, alike within their confidence intervals: ${alike.slice(0, 5).join(", ")}${alike.length > 5 ? ` and ${alike.length - 5} more` : ""}.` : null,
      p.same.length ? `The very same: ${p.same.join(", ")}.` : null,
    ].filter(Boolean);
    const about = `Mean of ${p.episodes} evaluation episode${p.episodes === 1 ? "" : "s"} of ${number(p.length, 0)} steps, ` +
      `${p.deterministic ? "the most probable action each time" : "actions drawn at random from the policy"}. ` +
      "The further right on a bar, the better; the band is the 95 % confidence interval, ticks are rules.";
    $("chosen").style.setProperty("--dot", stroke(p));
    $("chosen").replaceChildren(...[element("h2", {}, element("span", { class: "dot" }), p.name),
      p.roles.length ? element("p", { class: "role" }, p.roles.join(", ")) : null,
      ...notes.map((text) => element("p", { class: "note" }, text)),
      element("div", { class: "bars" }, axes.map((i) => strip(p, i))), element("p", { class: "hint" }, about),
      policies.length > 1 ? element("button", { type: "button", id: "pin", class: "plain", "aria-pressed": pinned, onclick: () => pin(p.id) }, pinned ? "Unpin" : "Pin to compare") : null,
      p.use ? element("details", { class: "use", id: "use" }, element("summary", {}, "Run it"), ...snippet("In a shell", p.use.shell, "shell"), ...snippet("In Python", p.use.python)) : null,
      ...(!p.use && p.command ? snippet("Asked for", command(p.command)) : [])].filter(Boolean));
  }

  function compare() {
    const [p, q] = state.pins.map((id) => byId.get(id));
    $("compare-card").hidden = !q;
    if (!q) return;
    const rows = axes.map((i) => {
      const both = p.mean[i] !== null && q.mean[i] !== null;
      const verdict = !both ? "–" : differ(p, q, i) ? `${(p.good[i] > q.good[i] ? p : q).name} is better` : "may be chance";
      return element("tr", {}, element("td", { title: measures[i].sentence }, name(i)), ...[p, q].map((one) => element("td", { title: interval(one, i) }, show(one.mean[i], i))),
        element("td", {}, both ? `${show(value(p.good[i] - q.good[i], i), i)} ± ${show(halfApart(p, q, i), i)}` : "–"), element("td", {}, verdict));
    });
    $("compare").replaceChildren(element("thead", {}, element("tr", {}, ["", p.name, q.name, "difference", ""].map((text) => element("th", { scope: "col" }, text)))),
      element("tbody", {}, rows));
  }

  // ---- the table, and files of it -------------------------------------------------------------------------------
  function table() {
    if (!$("table-card").open) return;
    const best = measures.map((_, i) => (policies.length > 1 ? Math.max(...known(policies.map((p) => p.good[i]))) : null));
    const figure = (p, i) => element("span", {}, element(p.id !== undefined && p.good[i] !== null && p.good[i] === best[i] ? "b" : "span", {}, show(p.mean[i], i)),
      element("small", {}, measures[i].optimised && p.half[i] !== null ? ` ± ${show(p.half[i], i)}` : ""));
    const columns = [...measures.flatMap((m, i) => {
      const column = { text: name(i), optimised: m.optimised && !m.final, title: [m.title, m.sentence, better(m)].filter(Boolean).join(". "),
        of: (p) => p.good[i] ?? p.mean[i], cell: (p) => figure(p, i), note: (p) => interval(p, i) };
      const luck = { text: "chance", title: `size of ${m.title} from luck alone, for a policy blind to the groups`,
        of: (p) => p.chance[i], cell: (p) => element("small", {}, show(p.chance[i], i)) };
      return m.optimised && known(policies.map((p) => p.chance[i])).length ? [column, luck] : [column];
    }), { text: "steps", title: "mean length of an episode", of: (p) => p.length, cell: (p) => number(p.length, 0) }];
    const first = policies.find((p) => p.command)?.command;
    const asked = first ? `${Object.keys(first.returns).join(", ")}; steps` : "";
    const head = element("tr", {}, element("th", { scope: "col" }, "policy"),
      columns.map((c, k) => element("th", { scope: "col", class: c.optimised ? "optimised" : null, title: c.title,
        "aria-sort": order.column === k ? (order.ascending ? "ascending" : "descending") : null },
        element("button", { onclick: () => { order = { column: k, ascending: order.column === k && !order.ascending }; keeping(table); } }, c.text))),
      first ? element("th", { scope: "col", class: "asked", title: `the command that the policy was given (${asked})` }, "asked for") : null);
    const sorted = [...shown()];
    if (order.column !== null) sorted.sort((p, q) => {
      const { of } = columns[order.column];
      return ((of(q) ?? -Infinity) - (of(p) ?? -Infinity)) * (order.ascending ? -1 : 1);
    });
    const row = (p, learned) => element("tr", learned ? { "data-policy": p.id, tabindex: 0, "aria-selected": p.id === state.chosen, onclick: () => choose(p.id),
      onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(p.id); } } } : {},
      element("td", {}, learned ? element("span", { class: "dot", style: `--dot:${stroke(p)}` }) : null, p.name),
      columns.map((c) => element("td", { title: c.note?.(p) }, c.cell(p))),
      first ? element("td", { class: "asked" }, element("small", {}, p.command ? command(p.command) : "")) : null);
    $("table").replaceChildren(element("thead", {}, head), element("tbody", { class: "policies" }, sorted.map((p) => row(p, true))),
      ...(baselines.length ? [element("tbody", { class: "rules" }, element("tr", {}, element("th", { colspan: 99 }, "Simple rules, for comparison")), baselines.map((p) => row(p, false)))] : []));
  }
  function records() {
    return [...shown(), ...baselines].map((p) => ({ policy: p.name, rule: p.id === undefined, episodes: p.episodes, steps: p.length,
      measures: Object.fromEntries(measures.map((m, i) => [m.label, { mean: p.mean[i], half_width: p.half[i], chance: p.chance[i] }])), groups: p.groups }));
  }
  function csv() {
    const cell = (text) => { // a name must not become a formula of a spreadsheet
      const safe = typeof text === "string" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : String(text ?? "");
      return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
    };
    const head = ["policy", "rule", "episodes", "steps", ...measures.flatMap((m) => [m.label, `${m.label} (half width)`])];
    const rows = records().map((r) => [r.policy, r.rule, r.episodes, r.steps, ...Object.values(r.measures).flatMap((m) => [m.mean, m.half_width])]);
    return [head, ...rows].map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
  }
  function save(file, type, text) {
    const link = element("a", { href: URL.createObjectURL(new Blob([text], { type })), download: file });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  // ---- state ----------------------------------------------------------------------------------------------------
  function update() {
    const list = shown();
    $("kept").textContent = `${list.length} of ${policies.length} policies are left.`;
    $("pick").replaceChildren(...list.map((p) => element("option", { value: p.id, ...(p.id === state.chosen ? { selected: "" } : {}) }, p.name)));
    if (!list.some((p) => p.id === state.chosen)) $("pick").prepend(element("option", { value: state.chosen, selected: "" }, byId.get(state.chosen).name));
    parallel(); radar(); pairs.forEach((both, k) => pair(both, `pair-${k}`)); table();
  }
  function render() { keeping(() => { groups(); shortList(); panel(); compare(); update(); }); }
  // Drawing replaces parts of the page: what has the focus in them or is unfolded is so again.
  function keeping(draw) {
    const stops = (part) => [...part.querySelectorAll("button, summary, [tabindex]")];
    const focused = document.activeElement, part = focused.closest("[id]"), place = part ? stops(part).indexOf(focused) : -1;
    const open = [...document.querySelectorAll("details[open]")].map(({ id }) => id);
    draw();
    for (const id of open) $(id)?.setAttribute("open", "");
    const again = part && $(part.id);
    if (again && !focused.isConnected) (stops(again)[place] ?? again).focus({ preventScroll: true });
  }
  function remember() {
    const parts = [`policy=${state.chosen}`, state.pins.length ? `pin=${state.pins.join(",")}` : "",
      ...Object.entries(state.least).map(([i, least]) => `least.${i}=${least}`), state.codes ? "codes=1" : ""];
    history.replaceState(null, "", `#${parts.filter(Boolean).join("&")}`);
  }
  function choose(id) { state.chosen = id; remember(); render(); }
  function pin(id) {
    state.pins = state.pins.includes(id) ? state.pins.filter((other) => other !== id) : [...state.pins, id].slice(-2);
    remember(); render();
  }
  function fromAddress() {
    const given = new URLSearchParams(location.hash.slice(1)), there = (id) => byId.has(id);
    const asked = given.has("policy") ? Number(given.get("policy")) : NaN;
    state.chosen = there(asked) ? asked : state.chosen ?? (policies.find((p) => p.roles.includes("best compromise")) ?? policies[0]).id;
    state.pins = (given.get("pin") ?? "").split(",").filter(Boolean).map(Number).filter(there).slice(0, 2);
    state.least = Object.fromEntries(goals.map((i) => [i, Number(given.get(`least.${i}`) ?? NaN)]).filter(([, least]) => Number.isFinite(least)));
    state.codes = given.get("codes") === "1";
    $("codes").checked = state.codes;
  }
  function words() {
    const noted = [...axes, ...[...measures.keys()].filter((i) => !axes.includes(i) && measures[i].sentence && !measures[i].optimised)];
    $("words").replaceChildren(...noted.flatMap((i) => [element("dt", {}, state.codes ? measures[i].label : measures[i].title,
      element("span", {}, state.codes ? ` ${measures[i].title}` : ` ${measures[i].label}`)),
    element("dd", {}, [measures[i].sentence, !measures[i].zero_is_fair && better(measures[i]) && `${better(measures[i])[0].toUpperCase()}${better(measures[i]).slice(1)}.`, measures[i].unit && `In ${measures[i].unit}.`].filter(Boolean).join(" "))]));
  }

  function page() {
    $("title").textContent = data.title;
    $("lead").textContent = data.lead;
    const count = (n, one, many) => [n, n === 1 ? one : many];
    const facts = [count(policies.length, "policy", "policies"), count(data.objectives.length, "objective", "objectives"),
      count(baselines.length, "rule beside them", "rules beside them"), count(policies[0].episodes, "evaluation episode each", "evaluation episodes each")];
    $("facts").append(...facts.filter(([n]) => n).map(([n, what]) => element("li", {}, element("b", {}, String(n)), ` ${what}`)));
    $("words-hint").textContent = axes.some((i) => measures[i].zero_is_fair) ? "Fairness is 0 where everybody is treated fairly; the further below 0, the less fair." : "";
    const key = [...data.key, ...(policies.every((p) => p.colour) ? [] : [["var(--faint)", "the other policies"]])];
    if (policies.length > 1) $("key").append(...key.map(([shade, what]) => element("span", {}, element("i", { class: "dot", style: `--dot:${shade}` }), what)));
    const reached = axes.filter((i) => measures[i].better === "higher" && !measures[i].zero_is_fair);
    $("radar-hint").textContent = "The further out, the better. The number under a name is the value in the middle, not that of a policy. The rim is the best there can be, 0 for what is best at 0" +
      (reached.length ? `; for ${reached.map((i) => measures[i].title).join(", ")} the best that a policy or rule reaches (${reached.map((i) => show(measures[i].ideal, i)).join(", ")}).` : ".");
    for (const place of document.querySelectorAll(".even-hint")) {
      const even = measures[(place.classList.contains("goals") ? goals : axes).find((i) => measures[i].name.split("@")[0] === "IF")];
      place.textContent = !even ? "" : `${even.title[0].toUpperCase()}${even.title.slice(1)} is below 0 even where everybody is treated alike, as by a rule that rejects all: compare it with the rules, not with 0.`;
    }
    $("chance-hint").textContent = policies.some((p) => known(p.chance).length) ? "Chance: what a policy blind to the groups has on average, from luck alone." : "";
    const boxes = (list, prefix) => list.map((item, k) => element("figure", {}, item.title ? element("figcaption", { class: "hint" }, item.title) : "",
      element("div", { class: "chart", id: `${prefix}-${k}`, "data-height": 300 })));
    $("pairs").append(...boxes(pairs, "pair"));
    $("pairs-card").hidden = !pairs.length;
    $("curves").append(...boxes(data.curves, "curve"));
    $("curves-card").hidden = !data.curves.length;
    $("curves-hint").hidden = !data.curves.some((item) => item.title === "Hypervolume");
    $("made").append(...data.made.flatMap(([key, text]) => [element("dt", {}, key), element("dd", {}, text)]));
    $("made-card").hidden = !data.made.length;
    const alone = policies.length < 2;
    $("parallel-card").hidden = alone;
    $("radar-card").hidden = alone || axes.length < 3;
    $("hero").classList.toggle("alone", alone);
    $("shapes").classList.toggle("alone", $("radar-card").hidden);
    $("reset").hidden = $("link").hidden = alone;
    $("pick").parentElement.hidden = $("bold-hint").hidden = alone;
    $("table-card").open = policies.length <= 5;
    $("table-card").addEventListener("toggle", table);
    $("pick").addEventListener("change", (event) => choose(Number(event.target.value)));
    $("codes").addEventListener("change", (event) => { state.codes = event.target.checked; remember(); words(); sliders(); render(); });
    $("reset").addEventListener("click", () => { state.least = {}; state.pins = []; remember(); sliders(); render(); });
    $("csv").addEventListener("click", () => save("policies.csv", "text/csv", csv()));
    $("json").addEventListener("click", () => save("policies.json", "application/json", JSON.stringify(records(), null, 1)));
    $("link").addEventListener("click", () => copied($("link"), location.href));
  }
  const curves = () => data.curves.forEach((item, k) => curve(item, `curve-${k}`));
  const all = () => { words(); sliders(); render(); curves(); };

  page(); fromAddress(); all();
  window.addEventListener("hashchange", () => { fromAddress(); all(); });
  // Charts are as wide as the page when they are drawn: on paper as wide as A4.
  const paper = (on) => { document.documentElement.classList.toggle("paper", on); all(); };
  window.addEventListener("beforeprint", () => {
    paper(true);
    for (const part of document.querySelectorAll("details:not(.use)")) part.open = true;
    table();
  });
  window.addEventListener("afterprint", () => { paper(false); document.querySelectorAll(".js-plotly-plot").forEach((chart) => Plotly.Plots.resize(chart)); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", all);
  const fit = () => `${narrow()} ${turned()}`;
  let before = fit();
  window.addEventListener("resize", () => { if (fit() !== before) { before = fit(); all(); } });
})();
