<?php
// Installs WordPress and publishes ten posts.
$_SERVER['HTTP_HOST'] = 'wordpress.test';
define('WP_INSTALLING', true);
require '/usr/share/wordpress/wp-load.php';
require '/usr/share/wordpress/wp-admin/includes/upgrade.php';
wp_install('A weblog', 'admin', 'admin@wordpress.test', true, '', 'only for this run');
for ($post = 1; $post <= 10; $post++)
    wp_insert_post(['post_title' => "Post $post", 'post_status' => 'publish', 'post_author' => 1,
                    'post_content' => str_repeat("<p>What post $post has to say, in some length.</p>\n", 60)]);
