// What while_true.yml calls.
module.exports = {
  show: (context, _ee, done) => {
    const { $loopCount, $loopElement } = context.vars;
    console.log(`after ${JSON.stringify([$loopCount, $loopElement])}`);
    done();
  },
  third: (context, next) => next(context.vars.$loopCount < 3),
};
