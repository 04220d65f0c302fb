// Calls filtrex and jsonpath-plus as Artillery does, for npm.rs. `filtrex`, `JSONPath` and `texts` are in scope.

// jsonpath-plus keeps every path and filter that it has seen; after this number of queries they are dropped.
const QUERIES_MAX = 1000;
let queries = 0;

// The message of an error in one line.
const lineOf = (error) => String(error?.message ?? error).replace(/\s*\n\s*/gu, ' ');

return {
    // As `extractJSONPath` in Artillery's engine_util.js; an exception finds nothing there.
    query(path, json, wrap) {
        if (queries++ % QUERIES_MAX === 0) {
            JSONPath.cache = {};
        }
        return JSONPath({ path, json, wrap });
    },

    // The mistake in a path's filters and scripts that shows before there is a body, or ''.
    mistake(path) {
        try {
            const query = new JSONPath({ path, json: {}, autostart: false });
            query.currEval = query.eval;
            query.currSandbox = {};
            for (const step of JSONPath.toPathArray(path)) {
                const isFilter = step.startsWith('?(');
                if (isFilter || step.startsWith('(')) {
                    const code = isFilter ? step.replace(/^\?\((.*?)\)$/u, '$1') : step;
                    query._eval(code, {}, '', ['$'], null, null);
                }
            }
            return '';
        } catch (error) {
            const line = lineOf(error);
            // A missing member may be there in a body. A missing name is not there in any.
            return line.startsWith('jsonPath: ') && !/^jsonPath: \S+ is not defined/u.test(line) ? '' : line;
        }
    },

    // The names that an expression may ask for, and the function that computes it from their values, in this order.
    compile(text) {
        texts.length = 0;
        let run;
        try {
            run = filtrex.compileExpression(text);
        } catch (error) {
            throw new Error(lineOf(error));
        }
        const names = [...new Set(texts)];
        const vars = Object.create(null);
        return [names, (...values) => {
            values.forEach((value, at) => (vars[names[at]] = value));
            const value = run(vars);
            // filtrex returns an exception as the value.
            if (value instanceof Error) {
                throw new Error(lineOf(value));
            }
            return value;
        }];
    },
};
