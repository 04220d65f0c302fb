"""WordPress as Debian packages it, on Apache with PHP and on a MariaDB of its own, for as long as a `with` block lasts.

Needs a mount namespace of one's own (`lab.inside`): its configuration is laid over /etc/wordpress there. Ten posts, theme
Twenty Twenty-Three, no cron. Debian: wordpress wordpress-theme-twentytwentythree apache2 libapache2-mod-php php-mysql
mariadb-server apache2-utils.
"""

import os, shutil, subprocess, sys, tempfile, time
from contextlib import ExitStack
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import lab

HOST = 'wordpress.test'
ADDRESS = '127.0.0.2'
PROGRAMS = ('mariadbd', 'mariadb-install-db', 'mariadb', 'apache2', 'php', 'ab')
FILES = ('/usr/share/wordpress', '/usr/lib/apache2/modules/libphp8.2.so', '/etc/wordpress')
START_SECONDS = 30

APACHE = """
ServerName {host}
PidFile {room}/apache.pid
Listen {address}:80
{modules}
StartServers 10
MaxRequestWorkers 10
User www-data
Group www-data
ErrorLog {room}/apache-error.log
LogFormat "%r" short
CustomLog {room}/apache-access.log short
TypesConfig /etc/mime.types
DocumentRoot /usr/share/wordpress
DirectoryIndex index.php
<Directory />
    Options FollowSymLinks
    Require all granted
</Directory>
<FilesMatch "\\.php$">
    SetHandler application/x-httpd-php
</FilesMatch>
"""
MODULES = {'mpm_prefork_module': 'mod_mpm_prefork', 'authz_core_module': 'mod_authz_core', 'dir_module': 'mod_dir',
           'mime_module': 'mod_mime', 'php_module': 'libphp8.2'}

CONFIG = """<?php
define('DB_NAME', 'wordpress');
define('DB_USER', 'wordpress');
define('DB_PASSWORD', 'wordpress');
define('DB_HOST', 'localhost:{room}/mariadb.sock');
define('WP_HOME', 'http://{host}');
define('WP_SITEURL', 'http://{host}');
define('WP_CONTENT_DIR', '/var/lib/wordpress/wp-content');
define('DISABLE_WP_CRON', true);
define('WP_HTTP_BLOCK_EXTERNAL', true);
define('WP_DEFAULT_THEME', 'twentytwentythree');
"""

INSTALL = """
$_SERVER['HTTP_HOST'] = '{host}';
define('WP_INSTALLING', true);
require '/usr/share/wordpress/wp-load.php';
require '/usr/share/wordpress/wp-admin/includes/upgrade.php';
wp_install('A weblog', 'admin', 'admin@wordpress.test', true, '', 'only for this run');
for ($post = 1; $post <= 10; $post++)
    wp_insert_post(['post_title' => "Post $post", 'post_status' => 'publish', 'post_author' => 1,
                    'post_content' => str_repeat("<p>What post $post has to say, in some length.</p>\\n", 60)]);
"""


def missing():
    """What of Debian is not installed, as names of programs and files."""
    programs = [name for name in PROGRAMS if not shutil.which(name)]
    return programs + [path for path in FILES if not os.path.exists(path)]


class WordPress:
    """A site of its own under `http://127.0.0.2/`, host `wordpress.test`."""

    def __enter__(self):
        self.room = Path(tempfile.mkdtemp(prefix='weir-lab-wordpress-'))
        self.room.chmod(0o755)
        with ExitStack() as stack:
            stack.callback(shutil.rmtree, self.room)
            self._start_database(stack)
            self._install(stack)
            self._start_apache(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *failed):
        self._stack.__exit__(*failed)

    def fetches(self):
        """Requests that reached Apache so far."""
        return (self.room / 'apache-access.log').read_bytes().count(b'\n')

    def _start_database(self, stack):
        data = self.room / 'database'
        lab.run_quietly(['mariadb-install-db', '--no-defaults', f'--datadir={data}', '--user=mysql', '--skip-test-db'])
        self.room.chmod(0o777)
        server = ['mariadbd', '--no-defaults', f'--datadir={data}', '--user=mysql', '--skip-networking',
                  f'--socket={self.room}/mariadb.sock', f'--log-error={self.room}/mariadb.log']
        child = stack.enter_context(lab.Process(server, stderr=subprocess.DEVNULL)).child
        until = time.monotonic() + START_SECONDS
        while not (self.room / 'mariadb.sock').exists():
            if child.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f'mariadbd does not start: {(self.room / "mariadb.log").read_text()[-2000:]}')
            time.sleep(0.05)
        grant = ("CREATE DATABASE wordpress; CREATE USER wordpress@localhost IDENTIFIED BY 'wordpress'; "
                 'GRANT ALL ON wordpress.* TO wordpress@localhost')
        lab.run_quietly(['mariadb', '--no-defaults', f'--socket={self.room}/mariadb.sock', '-e', grant])

    def _install(self, stack):
        own = self.room / 'etc'
        own.mkdir(mode=0o755)
        (own / 'config-default.php').write_text(CONFIG.format(room=self.room, host=HOST))
        shutil.copy('/etc/wordpress/htaccess', own)
        lab.run_quietly(['mount', '--bind', str(own), '/etc/wordpress'])
        stack.callback(lab.run_quietly, ['umount', '/etc/wordpress'])
        lab.run_quietly(['php', '-d', 'display_errors=1', '-r', INSTALL.format(host=HOST)])

    def _start_apache(self, stack):
        modules = '\n'.join(f'LoadModule {name} /usr/lib/apache2/modules/{file}.so' for name, file in MODULES.items())
        conf = self.room / 'apache.conf'
        conf.write_text(APACHE.format(room=self.room, host=HOST, address=ADDRESS, modules=modules))
        # Told to end, Apache ends its whole process group.
        apache = lab.Process(['apache2', '-f', str(conf), '-DFOREGROUND'], start_new_session=True)
        child = stack.enter_context(apache).child
        lab.wait_for_port(ADDRESS, 80, child)
