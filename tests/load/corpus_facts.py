"""What corpus.py knows of Artillery's scripts beside what is in them: flags, servers, and what is expected."""
import json

T, X = "packages/artillery/test/", "examples/"
CORE, SCRIPTS, CLOUD = T + "core/scripts/", T + "scripts/", T + "cloud-e2e/fargate/fixtures/"
# Not judged, and why; everything else is.
LEFT_OUT = [
    (r"playwright|adot-cloudwatch", "needs a browser: Playwright scripts stay with Artillery"),
    (r"engine-posthog|artillery-engine-example", "an engine from npm"),
    (r"memory-hog", "allocates 10 GB to be killed"),
]
# A negative test that the word "playwright" would leave out.
JUDGED_ANYWAY = SCRIPTS + "unknown_engine.json"

ANY = object()


def facts():
    """What a script needs beside itself, and what is expected of it."""
    table = {}

    def add(name, **what):
        table[name] = what

    pets = ["-p", SCRIPTS + "pets.csv"]
    for name in ("all_features", "captures-regexp", "iftrue", "single_payload"):
        add(CORE + name + ".json", args=["-p", CORE + "data/pets.csv"])
    table[CORE + "captures-regexp.json"]["count"] = {"http.codes.201": 2, "http.codes.200": 2}
    table[CORE + "iftrue.json"]["count"] = {"http.codes.201": 2, "http.codes.404": 2, "http.requests": 4}
    add(CORE + "hello.json", count={"http.codes.200": 2, "http.codes.201": 2})
    add(CORE + "hello_basic_auth.json", count={"http.codes.200": 4, "http.codes.401": 2})
    add(CORE + "hello_environments.json", args=["-e", "staging"], count={"http.codes.200": 2})
    add(CORE + "before_test.json", count={"http.codes.200": 2})
    # `after` knows nothing of what the scenario captured: its match fails, and Artillery dies of it with 1.
    add(CORE + "after_test.json", exit=1, count={"http.codes.201": 1})
    add(CORE + "cookies.json", count={"http.codes.204": 2, "http.codes.200": 2})
    add(CORE + "cookies_socketio.json", count={"http.codes.200": ANY})
    add(CORE + "defaults_cookies.json", count={"http.codes.200": 2})
    add(CORE + "no_defaults_cookies.json", count={"http.codes.200": 2})
    add(CORE + "cookies_malformed_response.json", errors=["cookie_parse_error_invalid_cookie"], count={"http.codes.200": 2})
    add(CORE + "loop.json", count={"http.codes.200": 20})
    add(CORE + "loop_range.json", count={"http.codes.200": 12})
    add(CORE + "loop_nested_range.json", count={"http.codes.200": 12})
    add(CORE + "loop_infinite.json", interrupt_s=6, exit=130, completed=False, count={"http.codes.200": ANY})
    add(CORE + "parallel.json", count={"http.codes.200": 8})
    add(CORE + "config_variables.json", count={"http.requests": 2})
    add(CORE + "generators_http.json", count={"http.codes.201": 2})
    add(CORE + "hello_ws.json", count={"websocket.messages_sent": 2 * 13})
    add(T + "core/acceptance/ws/scripts/subprotocols.json", count={"websocket.messages_sent": 2})
    add(T + "core/acceptance/ws/scripts/ws-tls.json", count={"websocket.messages_sent": 1})
    add(CORE + "ws_proxy.json", count={"websocket.messages_sent": 1})
    add(CORE + "hello_socketio_with_args.json", count={"socketio.emit": 4})
    add(CORE + "namespaces_socketio.json", count={"socketio.emit": 4})
    add(CORE + "tls-lax.json", count={"http.codes.200": 2})
    add(CORE + "tls-strict.json", completed=False, errors=[ANY], count={"vusers.failed": 2})
    for name in ("arrival_count", "arrival_rate", "ramp_to"):
        add(CORE + f"concurrent_requests_{name}.json", phases=None, created=1, count={"vusers.skipped": ANY})
    add(CORE + "concurrent_requests_multiple_phases.json", created=ANY, count={"http.codes.200": ANY})
    add(CORE + "thinks_http.json", count={"vusers.completed": 2})
    add(CORE + "hello_socketio.json", count={"socketio.emit": ANY})
    add(CORE + "express_socketio.json", count={"vusers.completed": 2})

    add(SCRIPTS + "hello.json", args=["-c", SCRIPTS + "hello_config.json"], phases=None, created=1,
        count={"http.codes.200": 3})
    add(SCRIPTS + "environments.yaml", args=["-e", "local"], count={"http.codes.404": 2}, out="current environment: local")
    add(SCRIPTS + "environments2.json", args=["-e", "production", "-k"], count={"http.codes.200": 10})
    add(SCRIPTS + "multiple_payloads.json", args=["-e", "local"])
    add(SCRIPTS + "single_payload.json", args=pets, count={"http.codes.201": 20})
    add(SCRIPTS + "single_payload_object.json", count={"http.codes.201": 20})
    add(SCRIPTS + "single_payload_options.json", count={"http.codes.201": 20})
    add(SCRIPTS + "gh_215_add_token.json", count={"http.codes.200": 1})
    add(SCRIPTS + "hello_with_xpath.json", completed=ANY, errors=["Failed capture or match"])
    add(SCRIPTS + "http/async_function.json", completed=ANY, errors=[ANY], count={"asyncFunctionOrder": ANY})
    add(SCRIPTS + "http/simple_function.json", count={"simpleFunction": 1})
    add(SCRIPTS + "http/undefined_function.json", errors=['Undefined function "undefinedFunction"'],
        count={'errors.Undefined function "undefinedFunction"': 1})
    add(SCRIPTS + "http/error_code_function.json", completed=False, errors=["123"], count={"errors.123": 1})
    add(SCRIPTS + "http/error_message_function.json", completed=False, errors=["AwesomeErrorMessage"],
        count={"errors.AwesomeErrorMessage": 1})
    add(SCRIPTS + "ramp.json", phases=None, created=7)
    add(SCRIPTS + "ramp-regression-1682.json", phases=None, created=10)
    add(SCRIPTS + "scenario-async-esm-hooks/test.yml", completed=False, errors=["error_from_async_hook"],
        count={"hey_from_esm": 2, "errors.error_from_async_hook": 2})
    variables = json.dumps({"myVar": "abc123", "bar": "bcd456"})
    add(SCRIPTS + "scenario-cli-variables/scenario-with-variables.yml", args=["-v", variables],
        out="foo is abc123\nbar is bcd456\nother is abc123\nmyVar is abc123")
    variables = json.dumps({"myVar": 40, "defaultCookie": "abc123", "anotherCookie": "hellothere"})
    add(SCRIPTS + "scenario-cli-variables/scenario-with-other-nested-config.yml", args=["-v", variables],
        out="HTTP timeout is: 40\nHas default cookie: true\nHas cookie from flow: true")
    add(SCRIPTS + "scenario-config-different-folder/scenario.yml", created=1, out="Successfully ran with id myTestId123",
        args=["-c", SCRIPTS + "scenario-config-different-folder/config/config.yml"],
        env={"ARTILLERY_TEST_RUN_ID": "myTestId123"})
    add(SCRIPTS + "scenario-named/scenario.yml", args=["--scenario-name", "Test Scenario (4)"], phases=None, created=6,
        out="Successfully running scenario 4")
    payload = SCRIPTS + "scenario-payload-with-envs/config/artillery-config.yml"
    add(SCRIPTS + "scenario-payload-with-envs/scenario.yml", args=["-c", payload, "-e", "staging"], created=1,
        out="Successfully ran with id")
    custom = {"config": {"target": "http://asciiart.artillery.io:8080", "phases": [{"duration": 1, "arrivalCount": 1}]}}
    add(SCRIPTS + "scenario-with-custom-plugin/custom-plugin.yml", overrides=custom, created=1, count={"http.codes.200": 1})
    add(SCRIPTS + "scenario-with-parallel/scenario.yml", phases=None, created=2,
        count={"http.codes.200": 6, "beforeRequestHook.Dinosaur": 2, "afterRequestHook.Pony": 2})
    add(SCRIPTS + "scenarios-typescript/lodash.yml", count={"hey_from_ts": 2})
    add(SCRIPTS + "scenarios-typescript/error.yml", completed=False, errors=["error_from_ts_processor"],
        count={"errors.error_from_ts_processor": 2})
    add(SCRIPTS + "test-calc-server.yml", args=["-e", "multiple", "-t", "http://127.0.0.1:3011"], env={"CALC": "1"},
        count={"http.codes.200": 20})
    add(SCRIPTS + "test-suggest-exit-code.yml", exit=17, count={"http.codes.200": 1})
    add(SCRIPTS + "unknown_engine.json", exit=11, refused='unknown engine "playwright"')
    add(SCRIPTS + "with-dotenv/with-dotenv.yml", args=["--dotenv", SCRIPTS + "with-dotenv/my-vars"], created=1,
        count={"http.codes.200": 1})
    env = {"ARRIVAL_RATE": "2", "ENVIRONMENT": "staging", "NESTED_HEADER_VALUE": "abc",
           "URL": "http://asciiart.artillery.io:8080"}
    for name in ("with-env", "with-processEnvironment"):
        add(SCRIPTS + f"with-process-env/{name}.yml", env=env, phases=None, created=2, count={"http.codes.200": 2},
            out="Environment is staging\nHeader is abc")
    add(T + "integration/core/fixtures/http-file-upload.yml", args=["-t", "http://127.0.0.1:3010"], env={"UPLOADS": "1"},
        count={"http.codes.200": 1})

    add(CLOUD + "cli-exit-conditions/with-expect-ensure.yml", exit=1, count={"plugins.expect.failed": 2})
    add(CLOUD + "cli-exit-conditions/with-expect.yml", exit=21, count={"plugins.expect.failed": 2})
    # Its p95 < 1 ms may hold or not against a server this near.
    add(CLOUD + "uses-ensure/with-ensure.yaml", exit=ANY, count={"http.codes.200": 2})
    env = {"SECRET1": "/dino", "SECRET2": "/pony", "DOTENV1": "/armadillo", "DOTENV2": "/"}
    add(CLOUD + "cli-kitchen-sink/kitchen-sink.yml", env=env, count={"http.codes.200": 8})
    config = CLOUD + "mixed-hierarchy/config/config-no-file-uploads.yml"
    for name in ("dino", "pony"):
        add(CLOUD + f"mixed-hierarchy/scenarios/mixed-hierarchy-{name}.yml", args=["-c", config, "-e", "main"],
            count={"http.codes.200": 2})
    add(CLOUD + "simple-bom/simple-bom.yml", args=["-e", "test"])
    # The address lacks its number.
    for name in ("fargate", "lambda"):
        add(f"{T}cloud-e2e/{name}/fixtures/ts-external-pkg/with-external-foreign-pkg.yml", errors=["invalid_address"],
            count={"errors.invalid_address": 2, "http.codes.200": 2})
    # Input of the tests of Artillery's bundler, and scripts like any other.
    bom = T + "unit/fixtures/bom-trace/processor-"
    for name in ("cjs", "relative-resolve", "undeclared-pkg"):
        add(f"{bom}{name}/script.yml", count={"http.codes.200": 1})
    add(f"{bom}missing-import/script.yml", exit=11, fails="not-here")
    lambdas = T + "cloud-e2e/lambda/fixtures/"
    add(lambdas + "quick-loop-with-csv/blitz.yml", args=["-c", lambdas + "quick-loop-with-csv/config.yml"],
        count={"http.codes.200": 18})
    add(lambdas + "dotenv/dotenv-test.yml", env={"FRUIT": "apple"})

    plugins = "packages/artillery-plugin-"
    add(plugins + "apdex/test/fixtures/scenario.yml", count={"http.codes.200": 2})
    add(plugins + "expect/test/parallel.yml", exit=21, count={"plugins.expect.failed": 4, "plugins.expect.ok": 8})
    add(plugins + "expect/test/pets-fail-test.yaml", phases=None, created=1, exit=ANY, completed=ANY, errors=[ANY],
        count={"plugins.expect.failed": 1})
    add(plugins + "expect/test/pets-test.yaml", phases=None, created=1, exit=ANY, errors=[ANY], completed=ANY,
        count={"plugins.expect.ok.matchesRegexp": ANY})
    add(plugins + "expect/test/cdn-test.yml", args=["-k"], created=1, count={"plugins.expect.ok": 2})
    add(plugins + "memory-inspector/test/fixtures/scenario.yml", env={"TEST_PORT": "3003"}, count={"http.codes.200": 2})
    add(plugins + "publish-metrics/test/scenario.yaml", created=1, args=["-t", "http://127.0.0.1:8080"],
        count={"http.codes.200": 1, "http.codes.404": 2})

    common = ["-c", X + "multiple-scenario-specs/common-config.yml"]
    for name in ("armadillo", "dino", "pony"):
        add(X + f"multiple-scenario-specs/scenarios/{name}.yml", args=common, created=1, count={"plugins.expect.ok": 1})
    add(X + "artillery-plugin-hello-world/test.yml", count={"http.codes.200": 2})
    add(X + "automated-checks/load-test-with-automated-checks.yml", exit=ANY)
    # Its app needs SQLite's native module: the stand-in answers 200 where the script expects 201, 204 and a name.
    add(X + "functional-testing-with-expect-plugin/functional-load-tests.yml", args=["-e", "functional"], created=1, exit=21,
        count={"http.requests": 3, "plugins.expect.failed": ANY})
    for name in ("http-file-uploads", "http-socketio-server", "scenario-weights", "socket-io", "track-custom-metrics",
                 "using-cookies", "websockets"):
        [script] = {"http-file-uploads": ["file-uploads"], "http-socketio-server": ["http-socket"],
                    "socket-io": ["socket-io"], "track-custom-metrics": ["custom-metrics"], "using-cookies": ["cookies"],
                    "websockets": ["test"], "scenario-weights": ["scenario-weights"]}[name]
        add(X + f"{name}/{script}.yml", app=X + name + "/app.js")
    # Its hook asks https://api.artillery.io with Node's own client; then `json` in a GET is refused.
    add(X + "http-set-custom-header/set-header.yml", env={"NODE_TLS_REJECT_UNAUTHORIZED": "0"}, completed=False,
        errors=["ERR_GOT_REQUEST_ERROR"])
    env = {"UPSTASH_REDIS_URL": "http://redis.example", "UPSTASH_REDIS_TOKEN": "a"}
    add(X + "using-data-from-redis/scenario.yml", env=env, out="Username: user0 | Password: secret0")
    add(X + "rpc-twirp-with-custom-function/test/scenario.yml", count={"twirp.requests": ANY})
    # An async function is handed no callback, in Artillery neither: its `done()` throws once the answer is there.
    add(X + "soap-with-custom-function/soap.yml", app=X + "soap-with-custom-function/server/app.js", completed=False,
        errors=["done is not a function"], count={"soap.addNumbers.responses": 8})
    add(X + "table-driven-functional-tests/functional-test.yml", created=1, args=["-k"], count={"plugins.expect.ok": 3})
    add(X + "refresh-auth-token/refresh.yml", created=1, count={"http.codes.200": 3}, out="Used auth token: token-")
    add(X + "generating-vu-tokens/auth-with-token.yml", out="shared token is:")
    add(X + "script-overrides/test.yaml", args=["-e", "smoke"], count={"http.codes.200": 2})
    loops = {"config": {"phases": [{"duration": 1, "arrivalCount": 2}]}}
    add(X + "using-data-from-csv/website-test.yml", overrides=loops, created=2, interrupt_s=8, exit=130, completed=ANY,
        errors=[ANY], count={"http.requests": ANY})
    # The repository lacks its data and its processor; Artillery names the first and ends with 1 too.
    add(X + "starter-kit/scenarios/sample_task_03.yaml", exit=1, refused="data/users.csv")
    # They read `response.request.uri`, which Artillery gave long ago; the Artillery of today dies of it with 11.
    add(X + "starter-kit/scenarios/sample_task_01.yaml", args=["-k"], out="ENDPOINT: [GET] /v3/0eff1291")
    # `members/create` has no leading slash: the virtual user ends there.
    add(X + "starter-kit/scenarios/sample_task_02.yaml", args=["-k"], completed=False,
        errors=["Invalid URL - members/create"], out="ENDPOINT: [GET] /members/list: 200")
    return table
