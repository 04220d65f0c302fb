// What loop_variables.yml calls.
module.exports = {
  show: (context, _ee, done) => {
    const { $loopCount, $loopElement, n, el } = context.vars;
    console.log(`vars ${JSON.stringify([$loopCount, $loopElement, n, el])}`);
    done();
  },
  again: (context, next) => {
    context.vars.times = (context.vars.times ?? 0) + 1;
    next(context.vars.times < 3);
  },
};
