<?php
header('Content-Type: application/json');
echo json_encode(['path' => $_SERVER['PATH_INFO'] ?? '', 'format' => $_GET['format'] ?? '', 'api' => $_SERVER['HTTP_OCS_APIREQUEST'] ?? '']);
