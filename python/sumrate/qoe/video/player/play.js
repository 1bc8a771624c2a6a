// Plays an HLS stream with hls.js in headless Chromium and writes what a viewer had, as JSON.
//
//   node play.js --url http://10.1.1.2:5202/ --seconds 45 --output result.json
//                [--socks 127.0.0.1:1080] [--buffer 10] [--chromium /usr/bin/chromium]
//
// Prints `first-byte` when the first fragment has come. The exit status is 1 if nothing played.
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { parseArgs } from 'node:util';
import { chromium } from 'playwright-core';

const { values } = parseArgs({
  options: {
    url: { type: 'string' },
    seconds: { type: 'string', default: '45' },
    output: { type: 'string' },
    socks: { type: 'string' },
    buffer: { type: 'string', default: '10' },
    chromium: { type: 'string', default: 'chromium' },
  },
});
if (!values.url || !values.output) {
  console.error('error: --url and --output are needed');
  process.exit(2);
}

const browser = await chromium.launch({
  executablePath: values.chromium,
  proxy: values.socks ? { server: `socks5://${values.socks}` } : undefined,
  // Namespaces of ours have no second user for the sandbox, and nothing but our own page is opened.
  args: ['--no-sandbox', '--autoplay-policy=no-user-gesture-required', '--mute-audio'],
});
let status = 1;
try {
  const page = await browser.newPage();
  await page.exposeFunction('began', () => console.log('first-byte'));
  await page.goto(new URL('player.html', values.url).href);
  await page.addScriptTag({ path: createRequire(import.meta.url).resolve('hls.js/dist/hls.min.js') });
  const result = await page.evaluate(watch, {
    seconds: Number(values.seconds),
    buffer: Number(values.buffer),
  });
  result.browser = browser.version();
  writeFileSync(values.output, `${JSON.stringify(result)}\n`);
  if (result.error) console.error(`error: ${result.error}`);
  status = result.error ? 1 : 0;
} finally {
  await browser.close();
}
process.exit(status);

// Runs in the page: `seconds` from the first fragment on, with `buffer` seconds of buffer.
async function watch({ seconds, buffer }) {
  const video = document.querySelector('video');
  const hls = new Hls({
    maxBufferLength: buffer,
    maxMaxBufferLength: buffer,
    maxBufferSize: 1e9,
    backBufferLength: buffer,
  });
  const played = [];
  let stalls = 0;
  let startedAt = null;
  let error = null;
  const firstFragment = new Promise((resolve, reject) => {
    hls.once(Hls.Events.FRAG_LOADED, resolve);
    hls.on(Hls.Events.ERROR, (_, data) => {
      if (!data.fatal) return;
      error = `${data.type}: ${data.details}`;
      reject(new Error(error));
    });
    setTimeout(() => reject(new Error('no fragment came within 30 s')), 30_000);
  });
  hls.on(Hls.Events.FRAG_CHANGED, (_, { frag }) => {
    // What was fetched counts, not what the playlist declares.
    played.push({ level: frag.level, duration: frag.duration, bytes: frag.stats.loaded });
  });
  video.addEventListener('waiting', () => {
    if (startedAt !== null) stalls += 1;
  });
  video.addEventListener('playing', () => {
    startedAt ??= { wall: performance.now(), media: video.currentTime };
  });
  const asked = performance.now();
  hls.loadSource('stream.m3u8');
  hls.attachMedia(video);
  try {
    await firstFragment;
  } catch (failure) {
    return { error: String(failure.message ?? failure) };
  }
  await window.began();
  video.play().catch(() => {});
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
  if (startedAt === null) return { error: error ?? 'nothing was played' };
  const watched = (performance.now() - startedAt.wall) / 1000;
  const shown = video.currentTime - startedAt.media;
  const quality = video.getVideoPlaybackQuality();
  const bitrates = hls.levels.map((level) => level.bitrate / 1e6);
  const length = played.reduce((sum, part) => sum + part.duration, 0);
  return {
    schema: 'sumrate.lab.player.v1',
    startup_s: (startedAt.wall - asked) / 1000,
    watched_s: watched,
    shown_s: shown,
    stalled_share: Math.max(0, 1 - shown / watched),
    stalls,
    mbps: (played.reduce((sum, part) => sum + part.bytes, 0) * 8e-6) / length,
    declared_mbps:
      played.reduce((sum, part) => sum + bitrates[part.level] * part.duration, 0) / length,
    switches: played.slice(1).filter((part, i) => part.level !== played[i].level).length,
    levels_mbps: bitrates,
    dropped_frames: quality.droppedVideoFrames,
    frames: quality.totalVideoFrames,
    error,
  };
}
