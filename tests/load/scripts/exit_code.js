'use strict';
module.exports = {
  judge(context, events, done) {
    global.artillery.suggestedExitCode = 7;
    return done();
  },
};
