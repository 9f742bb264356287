"use strict";
// Draws the results of `hawser bench --json`, which stand in the element "results".
(() => {
  const results = JSON.parse(document.getElementById("results").textContent);
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  const element = (name, text, kind) => {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    if (kind) made.className = kind;
    return made;
  };

  // Three digits that count.
  const short = (value) => value === undefined || value === null ? "" : value === 0 ? "0"
    : Math.abs(value) >= 100 ? value.toFixed(0) : String(Number(value.toPrecision(3)));
  const time = (ns) => !ns ? "" : ns < 1e3 ? `${ns} ns` : ns < 1e6 ? `${short(ns / 1e3)} µs`
    : ns < 1e9 ? `${short(ns / 1e6)} ms` : `${short(ns / 1e9)} s`;
  const size = (bytes) => bytes >= 1 << 20 ? `${bytes / (1 << 20)} MiB` : bytes >= 1024 ? `${bytes / 1024} KiB` : `${bytes} B`;
  const target = (row) => {
    const signs = {ratio_min: "≥", ratio_max: "≤", value_max: "≤", value_below: "<"};
    const sign = signs[row.target.kind];
    return sign ? `${sign} ${row.target.bound} ${row.target.kind.startsWith("ratio") ? "×" : row.unit}` : "";
  };
  // One title for all sizes of a row such as "write of 64 KiB, allocated".
  const ofAllSizes = (what) => what.replace(/\d+ (KiB|MiB|B)\b/, "each size");
  const isPeer = (row) => row.id.startsWith("ucx.");

  // "tcp.write.1m.c2" is the size 1 MiB of the group "tcp.write.*.c2".
  const sizeOf = (id) => {
    const found = /^(.*?[.x])(\d+)([kmg]?)((?:\.[a-z][a-z0-9]*)?)$/.exec(id);
    if (!found) return null;
    const [, before, number, unit, after] = found;
    return {group: `${before}*${after}`, bytes: Number(number) * {"": 1, k: 1024, m: 1 << 20, g: 1 << 30}[unit]};
  };

  const groups = () => {
    const found = new Map();
    for (const row of results.rows) {
      const place = row.state === "run" ? sizeOf(row.id) : null;
      if (!place) continue;
      if (!found.has(place.group)) found.set(place.group, []);
      found.get(place.group).push({row, bytes: place.bytes});
    }
    const wide = [...found].filter(([, points]) => points.length > 1);
    for (const [, points] of wide) points.sort((a, b) => a.bytes - b.bytes);
    return wide;
  };

  const line = (label, name, dash) =>
    ({label, stroke: colour(name), width: 2, dash, points: {show: true, size: 6}, value: (_, value) => short(value)});

  const plot = (place, title, caption, unit, data, lines, isLog) => {
    const figure = element("figure");
    figure.append(element("h3", title), element("figcaption", caption));
    place.append(figure);
    const axis = {stroke: colour("--faint"), grid: {stroke: colour("--line"), width: 1}, ticks: {stroke: colour("--line"), width: 1}};
    const sizes = data[0];
    new uPlot({
      padding: [null, 36, null, null],
      width: Math.max(320, figure.clientWidth - 26), height: 240,
      scales: {x: {time: false, distr: 3, log: 2}, y: isLog ? {distr: 3} : {range: (_, low, high) => [0, high * 1.08]}},
      axes: [{...axis, splits: () => sizes, filter: (_, splits) => splits,
              values: (_, splits) => splits.map(size), rotate: -35, size: 60},
             {...axis, label: unit, size: 60, values: (_, splits) => splits.map((split) => split === null ? "" : short(split))}],
      series: [{label: "size", value: (_, value) => value === null ? "" : size(value)}, ...lines],
    }, data, figure);
  };

  const drawGroup = (place, [group, points]) => {
    const sizes = points.map((point) => point.bytes);
    const {row} = points[0];
    const take = (field, scale = 1) => points.map((point) => point.row[field] ? point.row[field] * scale : null);
    const other = isPeer(row) ? "UCX" : "ceiling";
    const lines = [line("Hawser", "--hawser")], data = [sizes, take("value")];
    if (points.some((point) => point.row.ceiling)) {
      lines.push(line(other, "--other", [6, 4]));
      data.push(take("ceiling"));
    }
    plot(place, group, ofAllSizes(row.what), row.unit, data, lines, false);
    if (points.some((point) => point.row.p50_ns)) {
      plot(place, `${group}, latency`, "Time of one operation", "µs", [sizes, take("p50_ns", 1e-3), take("p99_ns", 1e-3)],
           [line("p50", "--hawser"), line("p99", "--p99", [2, 3])], true);
    }
  };

  const describe = () => {
    const list = document.getElementById("surroundings");
    const open = (results.backends || []).filter((backend) => backend.open).map((backend) => backend.name);
    const shut = (results.backends || []).filter((backend) => !backend.open).map((backend) => backend.name);
    const facts = [["version", results.version], ["copies by", results.copy_kernel], ["cores", (results.cores || []).join(" and ")],
      ["pages", results.huge_pages ? "huge" : "4 KiB"], ["rounds", results.rounds], ["backends", open.join(", ")],
      ["not open", shut.join(", ")],
      ["not the default", Object.entries(results.not_default || {}).map(([name, value]) => `${name} = ${value}`).join(", ")],
      ["ucx_perftest", results.ucx_perftest]];
    for (const [name, value] of facts) {
      if (value !== undefined && value !== "") list.append(element("dt", name), element("dd", value));
    }
  };

  const table = () => {
    const body = document.getElementById("rows");
    const head = element("tr");
    const columns = [["row"], ["value", "number"], ["unit"], ["ceiling", "number"], ["ratio", "number"], ["target"], ["met"], ["p50", "number"],
      ["p99", "number"], ["cores"], ["what"]];
    for (const [name, kind] of columns) head.append(element("th", name, kind));
    body.append(head);
    for (const row of results.rows) {
      const line = element("tr");
      const met = row.state !== "run" ? row.state : row.met === undefined ? "" : row.met ? "yes" : "no";
      const what = row.state === "run" ? row.what + (row.disturbed ? " (disturbed by other processes)" : "") : `${row.what}: ${(row.error || {}).message || row.state}`;
      for (const [text, kind] of [[row.id], [short(row.value), "number"], [row.unit], [short(row.ceiling), "number"],
        [row.ratio ? row.ratio.toFixed(2) : "", "number"], [target(row)], [met, met], [time(row.p50_ns), "number"], [time(row.p99_ns), "number"],
        [row.placement || ""], [what, "what"]]) line.append(element("td", text, kind));
      body.append(line);
    }
  };

  describe();
  const place = document.getElementById("plots");
  const found = groups();
  for (const group of found) drawGroup(place, group);
  if (found.length === 0) place.append(element("p", "No rows of more than one size were run."));
  table();
})();
