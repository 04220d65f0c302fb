<?php
// The front controller: every path that is not a file. It reads REQUEST_URI, as Nextcloud does.
session_name('cloudsession');
session_set_cookie_params(['path' => '/', 'httponly' => true, 'samesite' => 'Lax']);
session_start();
$path = rtrim(rawurldecode(preg_replace('~^/index\.php|\?.*~s', '', $_SERVER['REQUEST_URI'])), '/');
$_SESSION['token'] ??= bin2hex(random_bytes(16));

switch (true) {
case $path === '':
    header('Location: ' . (isset($_SESSION['user']) ? '/apps/files/' : '/login'), true, 303);
    break;
case $path === '/login' && $_SERVER['REQUEST_METHOD'] === 'POST':
    if (!hash_equals($_SESSION['token'], $_POST['requesttoken'] ?? '')) {
        http_response_code(412);
        echo '{"message":"CSRF check failed"}';
    } elseif (($_POST['user'] ?? '') === 'kim' && ($_POST['password'] ?? '') === 'secret') {
        session_regenerate_id(true);
        $_SESSION['user'] = 'kim';
        setcookie('cloud_username', 'kim', ['path' => '/', 'samesite' => 'Lax']);
        header('Location: /apps/files/', true, 303);
    } else {
        header('Location: /login?wrong=1', true, 303);
    }
    break;
case $path === '/login':
    header('Cache-Control: no-cache, no-store, must-revalidate');
    echo '<form><input name="requesttoken" value="', $_SESSION['token'], '"></form>', isset($_GET['wrong']) ? 'Wrong login' : '';
    break;
case $path === '/apps/files':
    isset($_SESSION['user']) ? print('files of ' . $_SESSION['user']) : header('Location: /login', true, 303);
    break;
case $path === '/apps/stream':
    // Each part goes out alone; the browser of the test reads the first before the second is made.
    header('X-Accel-Buffering: no');
    header('Content-Type: text/event-stream');
    for ($part = 1; $part <= 3; $part++) {
        echo "data: part $part\n\n";
        @ob_flush();
        flush();
        usleep(300000);
    }
    break;
case str_starts_with($path, '/download/'):
    header('Content-Type: application/x-cloud');
    header('Content-Disposition: attachment');
    header('X-Accel-Redirect: /files-of-the-cloud/' . rawurlencode(substr($path, 10)));
    break;
case $path === '/core/preview.png':
    header('Content-Type: image/png');
    echo 'a picture of ', $_GET['file'] ?? '';
    break;
case str_starts_with($path, '/params'):
    header('Content-Type: application/json');
    $names = ['PATH_INFO', 'SCRIPT_NAME', 'SCRIPT_FILENAME', 'REQUEST_URI', 'QUERY_STRING', 'DOCUMENT_URI', 'HTTPS', 'front_controller_active',
        'modHeadersAvailable', 'HTTP_HOST', 'REQUEST_METHOD', 'PHP_SELF', 'SERVER_PROTOCOL', 'REDIRECT_STATUS', 'CONTENT_LENGTH', 'CONTENT_TYPE'];
    echo json_encode(array_map(fn ($name) => $_SERVER[$name] ?? null, array_combine($names, $names)), JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE);
    break;
default:
    http_response_code(404);
    echo 'the cloud has no ', htmlspecialchars($path);
}
