<?php
// WebDAV as in Nextcloud, by the library that Nextcloud uses too: /remote.php/dav/files/USER/ and /remote.php/webdav/.
require '/usr/share/php/Sabre/autoload.php';
use Sabre\DAV;

error_reporting(E_ALL & ~E_DEPRECATED);

class Users extends DAV\Auth\Backend\AbstractBasic {
    protected function validateUserPass($user, $password) {
        return $user === 'kim' && $password === 'secret';
    }
}

$data = __DIR__ . '/data/kim';
is_dir($data) || mkdir($data, 0755, true);
$base = preg_match('~^/(webdav|dav/files/kim)(/|$)~', $_SERVER['PATH_INFO'] ?? '', $found) ? "/remote.php/$found[1]/" : null;
if ($base === null) {
    http_response_code(404);
    exit('no such service');
}
$server = new DAV\Server(new DAV\FSExt\Directory($data));
$server->setBaseUri($base);
$server->addPlugin(new DAV\Auth\Plugin(new Users(), 'Cloud'));
$server->addPlugin(new DAV\Locks\Plugin(new DAV\Locks\Backend\File(__DIR__ . '/data/locks')));
$server->exec();
