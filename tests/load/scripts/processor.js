// What processor.yml calls.
module.exports = {
  seen(_params, _context, _ee, next) {
    next();
  },

  elsewhere(params, _context, _ee, next) {
    params.url = '/set';
    next();
  },

  look(_params, response, context, _ee, next) {
    const { method, uri } = response.request;
    console.log(`${method} ${uri.pathname} had ${JSON.stringify(context._jar.store.idx['127.0.0.1']['/'].session.value)}`);
    context._jar.setCookieSync('mine=m1; Path=/', response.url);
    next();
  },
};
