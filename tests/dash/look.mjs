// Pictures of the page with the made-up feed: node tests/dash/look.mjs DIR [calm|rising|failing] [ko|en]
import { mkdir } from "node:fs/promises";
import { SIZES, VIEWS, launch, open, overflow, show, violations } from "./browser.mjs";
import { serve } from "./fixture.mjs";

const [dir = "/tmp/look", mood = "calm", language = "en", only] = process.argv.slice(2);
await mkdir(dir, { recursive: true });
const server = await serve(0, mood);
const browser = await launch();
for (const size of Object.keys(SIZES)) {
  for (const theme of ["light", "dark"]) {
    const page = await open(browser, `http://127.0.0.1:${server.address().port}/`, { size, theme, language });
    await new Promise((done) => setTimeout(done, 1300));
    for (const view of VIEWS.filter((view) => !only || only.includes(view))) {
      await show(page, view);
      await page.screenshot({ path: `${dir}/${view}-${theme}-${size}.png`, fullPage: true });
      for (const line of await violations(page)) console.log(view, theme, size, line);
      const wide = await overflow(page);
      if (wide > 0) console.log(view, theme, size, "too wide by", wide);
    }
    for (const line of page.said) console.log("said:", line);
    await page.close();
  }
}
await browser.close();
server.close();
server.closeAllConnections();
