<?php
// What Debian's WordPress is told in a lab: its database is on this host, and it asks nobody outside.
define('DB_NAME', 'wordpress');
define('DB_USER', 'wordpress');
define('DB_PASSWORD', 'wordpress');
define('DB_HOST', '127.0.0.1');
define('WP_HOME', 'http://wordpress.test');
define('WP_SITEURL', 'http://wordpress.test');
define('WP_CONTENT_DIR', '/var/lib/wordpress/wp-content');
define('DISABLE_WP_CRON', true);
define('WP_HTTP_BLOCK_EXTERNAL', true);
define('WP_DEFAULT_THEME', 'twentytwentythree');
