<?php
header('Content-Type: application/json');
echo '{"installed":true,"maintenance":false,"productname":"Cloud"}';
