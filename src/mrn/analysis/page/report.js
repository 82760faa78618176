// Controls, and redrawing when they change.
function drawMethods() {
  const box = $("methods");
  box.replaceChildren(make("legend", "methods", null));
  for (const method of current().methods) {
    const item = make("label", null, box);
    const checkbox = make("input", null, item, { type: "checkbox", value: method });
    checkbox.checked = !hidden.has(method);
    checkbox.addEventListener("change", () => {
      if (checkbox.checked) hidden.delete(method); else hidden.add(method);
      draw();
    });
    item.addEventListener("mouseenter", () => highlightEverywhere(hidden.has(method) ? null : method));
    item.addEventListener("mouseleave", () => highlightEverywhere(null));
    make("span", null, item, { class: "swatch" }).style.background = color(method);
    item.append(data.names[method]);
  }
}

function draw() {
  remember();
  drawCurves(); drawTable(); drawTrials(); drawAggregates(); drawPictures(); drawRuns();
}

function chooseExperiment() {
  const experiment = current(), tasks = experiment.tasks, columns = measuredColumns(experiment);
  options($("task"), tasks.length > 1 ? [ALL, ...tasks] : tasks);
  options($("y"), columns, columns.map((name) => name.replaceAll("_", " ")));
  $("measure").querySelector("[value=better]").textContent = experiment.better;
  drawMethods();
  draw();
}

document.title = $("title").textContent = data.title;
$("about").textContent = data.about;
for (const problem of data.problems) make("p", problem, $("problems"));
options($("experiment"), data.experiments.map((experiment) => experiment.name || "runs"));
$("experiment-control").hidden = data.experiments.length < 2;
for (const id of ["x", "measure", "smoothing"]) if (hash.get(id)) $(id).value = hash.get(id);
if (!$("x").value) $("x").value = "epochs"; // a URL of an earlier version
$("seeds").checked = hash.get("seeds") === "1";
$("experiment").addEventListener("change", chooseExperiment);
for (const id of ["task", "x", "y", "smoothing", "seeds"]) $(id).addEventListener("change", draw);
$("measure").addEventListener("change", () => { remember(); drawTable(); });
for (const query of [dark, narrow]) query.addEventListener("change", () => { drawMethods(); draw(); });
chooseExperiment();
if (data.refresh) setTimeout(() => location.reload(), 1000 * data.refresh);
