// Listeners outlive the step that made them: what they set is there in the steps that follow.
module.exports = {
  listen(context, ee, next) {
    const socket = context.sockets[''];
    context.vars.seen = [];
    context.vars.count = 0;
    socket.on('pong2', ({ msg }) => {
      context.vars.count += 1;
      context.vars.seen.push(msg);
    });
    socket.on('*', ({ data }) => ee.emit('counter', `any.${data[0]}`, 1));
    socket.on('pong2', () => {
      throw new Error('one that throws');
    });
    socket.emit('echo', 'x', (answer) => {
      context.vars.answered = answer;
      ee.emit('counter', 'answers', 1);
    });
    next();
  },
  async wait(context) {
    const socket = context.sockets[''];
    context.vars.said = await new Promise((resolve) => {
      socket.once('said', resolve);
      socket.emit('say', 'waited for');
    });
  },
  hear(context, ee, next) {
    context.vars.heard = [];
    context.ws.on('message', (data, isBinary) => {
      context.vars.heard.push(`${data} ${isBinary}`);
      ee.emit('counter', 'heard', 1);
    });
    context.ws.send('from the processor');
    next();
  },
  nothing(context, ee, next) {
    ee.emit('counter', context.sockets === undefined && context.ws === undefined ? 'none' : 'some', 1);
    next();
  },
};
