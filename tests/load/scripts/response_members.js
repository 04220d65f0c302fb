// What response_members_*.yml call.
const path = (url) => String(url).replace(/^http:..[^/]*/, '');

module.exports = {
  look(params, response, context, _ee, next) {
    const { timings, req, request } = response;
    console.log(`${path(params.url)} -> ${path(response.url)} of ${path(response.requestUrl)} by ${response.redirectUrls.map(path)}`);
    console.log([
      response.statusMessage, response.httpVersion, response.ip, response.ok, response.isFromCache, response.retryCount,
      response.complete, response.aborted, Object.keys(response.trailers).length, response.rawTrailers.length,
      req.method, '/', request.options.method, path(request.options.url), typeof response.rawHeaders[0],
    ].join(' '));
    const { start, socket, lookup, connect, upload, response: head, end } = timings;
    const all = [start, socket, lookup, connect, upload, head, end];
    const isInOrder = all.every((time, at) => at === 0 || time >= all[at - 1]) && start > Date.now() - 60000;
    console.log(`${Object.keys(timings).join()} ${isInOrder ? 'in order' : JSON.stringify(timings)}`);
    next();
  },
};
