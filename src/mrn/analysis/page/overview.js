// The overview table and the aggregates.
const SHARE_MEASURES = ["success", "area", "better"];

// For each method that is shown, its figures after the epochs that all of these have on the task.
function comparedRows(experiment, task) {
  const rows = experiment.rows.filter((row) => row.task === task && !hidden.has(row.method));
  const epochs = Math.min(...rows.map((row) => row.own));
  return rows.filter((row) => row.epochs === epochs);
}

// What a cell says: the figure, and under it how well it is known.
function cell(row, measure) {
  if (!SHARE_MEASURES.includes(measure)) {
    const { text, reached } = row[measure], going = row.complete ? [] : ["not finished"];
    return [text.replace(/ \(.*/, ""), `${reached} of ${row.seeds} ${row.seeds === 1 ? "seed" : "seeds"}`, ...going];
  }
  const after = row.epochs < row.planned ? [`after epoch ${row.epochs} of ${row.planned}`] : [];
  if (row[measure] === null) return ["", ...after]; // mrn itself, or too few seeds
  const [value, low, high] = row[measure];
  if (low !== null) return [percent(value), range(low, high), ...after];
  const counted = measure === "success" && row.counted;
  return [percent(value), counted ? `one seed: ${range(counted[1], counted[2])}*` : "one seed", ...after];
}

// Not where epochs of different length never met, nor where a run ended early because of its success.
function comparable(rows) {
  return new Set(rows.flatMap((row) => row.length)).size < 2 && !rows.some((row) => row.stopped);
}

// The highest share, or the fewest episodes; all that are level. Of one seed nothing can be said.
function bestOf(rows, measure) {
  if (measure === "better" || rows.length < 2 || rows.some((row) => row.seeds < 2)) return [];
  const share = SHARE_MEASURES.includes(measure), once = new Set(rows.map((row) => row.stride)).size < 2;
  if (share ? !comparable(rows) : !once) return []; // who is evaluated more often is seen there sooner
  const got = rows.filter((row) => share || row[measure].epochs !== null);
  const known = got.every((row) => share || row[measure].episodes !== null);
  const worth = (row) => share ? row[measure][0] : -(known ? row[measure].episodes : row[measure].epochs);
  const top = Math.max(...got.map(worth));
  return got.filter((row) => worth(row) > top - 1e-9);
}

function tableNote(rows, measure) {
  const shared = "Methods on a task are compared over the epochs that all those shown have there.";
  if (measure === "better")
    return "How likely a run with the critic mrn, all else alike, has a higher mean success over the epochs than " +
           "one of the method, counted over all pairs of seeds, those that are level as half, and its 95 % bootstrap " +
           "interval, which has no width where all are on one side. Of one seed nothing is said. " + shared;
  const note = [];
  if (SHARE_MEASURES.includes(measure)) {
    if (rows.some((row) => row.seeds > 1)) note.push("Mean over seeds and its 95 % bootstrap interval (of 2 or 3 seeds: lowest to highest).");
    if (measure === "success" && rows.some((row) => row.counted))
      note.push("* of one seed: the 95 % Wilson interval of that policy's rate, from its evaluation " +
                "episodes; how much other seeds would differ is not known.");
    note.push(shared);
  } else note.push("Median over seeds of the training episodes until an evaluation first reached it.");
  note.push("The best is marked where each has at least two seeds, none ended early by stop_at, and all are compared " +
            "and evaluated after as many episodes; those that are level share the mark.");
  return note.join(" ");
}

function drawTable() {
  const experiment = current(), measure = $("measure").value, table = $("overview");
  const methods = shown(experiment), all = [];
  table.replaceChildren();
  const head = make("tr", null, make("thead", null, table));
  make("th", "task", head, { scope: "col" });
  for (const method of methods) make("th", data.names[method], head, { scope: "col" });
  const body = make("tbody", null, table);
  for (const task of experiment.tasks) {
    const line = make("tr", null, body);
    make("th", task, line, { scope: "row" });
    const rows = comparedRows(experiment, task), best = bestOf(rows, measure);
    all.push(...rows);
    for (const method of methods) {
      const row = rows.find((each) => each.method === method);
      if (!row) { make("td", "missing", line, { class: "missing" }); continue; }
      const [value, ...details] = cell(row, measure);
      const box = make("td", value, line, {
        "data-task": task, "data-method": method, class: best.includes(row) ? "best" : "" });
      for (const detail of details) make("small", detail, box);
    }
  }
  $("table-note").textContent = tableNote(all, measure);
}

function drawAggregates() {
  const experiment = current(), rows = experiment.aggregates.filter((row) => !hidden.has(row.method));
  $("aggregates").hidden = experiment.aggregates.length < 2 || experiment.shared.length < 2;
  if ($("aggregates").hidden) return;
  const better = experiment.aggregates.some((row) => row.improvement);
  const titles = { success: "final success (IQM)", area: "mean over the epochs (IQM)" };
  if (better) titles.improvement = "P(critic mrn is better in mean over epochs)";
  const known = experiment.aggregates.some((row) => row.success[1] !== null);
  $("aggregates-note").textContent =
    `${experiment.shared.length} tasks that every method has finished. ` +
    `Interquartile means${known ? " with 95 % stratified bootstrap intervals" : "; of one seed there are no intervals"}` +
    (better ? "; the probability that a run with the critic mrn, all else alike, has a higher mean over the epochs." : ".");
  for (const [name, box] of plots($("aggregate-plots"), Object.keys(titles), "data-part")) {
    const there = rows.filter((row) => row[name] !== null);
    const side = (end, sign) => there.map((row) => {
      const value = row[name][end];
      return value === null ? 0 : sign * (value - row[name][0]);
    });
    const trace = {
      x: there.map((row) => row[name][0]), y: there.map((row) => label(data.names[row.method])),
      error_x: { type: "data", symmetric: false, array: side(2, 1), arrayminus: side(1, -1), width: 0,
                 thickness: 2, color: css("--faint") },
      mode: "markers", marker: { size: 10, color: there.map((row) => colour(row.method)) },
      text: there.map(({ [name]: [value, low, high] }) =>
        percent(value) + (low === null ? "" : ` [${range(low, high)}]`)),
      hovertemplate: "%{y}: %{text}<extra></extra>",
    };
    const look = layout(titles[name], "", { autorange: "reversed" });
    look.xaxis = { ...look.xaxis, range: [-0.03, 1.03], tickformat: ".0%" };
    Plotly.newPlot(box, [trace], look, CONFIG);
  }
}
