// Without a font for mathematics some browsers leave subscripts on the line: site.css
// lowers them where this script has found that.
document.addEventListener("DOMContentLoaded", () => {
  const probe = document.createElement("div");
  probe.innerHTML = "<math><msub><mi>x</mi><mi>x</mi></msub></math>";
  document.body.append(probe);
  const [base, script] = probe.querySelectorAll("mi");
  const lowered =
    script.getBoundingClientRect().bottom - base.getBoundingClientRect().bottom;
  const height = base.getBoundingClientRect().height;
  probe.remove();
  if (lowered < 0.05 * height) document.documentElement.classList.add("no-math-font");
});
