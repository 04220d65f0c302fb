package lab;

import java.time.Duration;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import org.springframework.data.redis.core.StringRedisTemplate;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.transaction.support.TransactionTemplate;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;

/** What report S3's application has behind it: MariaDB by a pool of Hikari's, and sessions in Redis. */
@RestController
public class Stores {
    private static final Duration SESSION = Duration.ofMinutes(30);

    private final JdbcTemplate database;
    private final TransactionTemplate transaction;
    private final StringRedisTemplate redis;

    Stores(JdbcTemplate database, TransactionTemplate transaction, StringRedisTemplate redis) {
        this.database = database;
        this.transaction = transaction;
        this.redis = redis;
    }

    /** A query that takes so many seconds, and a connection of the pool meanwhile. */
    @GetMapping("/query")
    Map<String, Object> query(@RequestParam(defaultValue = "0.02") double seconds) {
        return Map.of("slept", database.queryForObject("SELECT SLEEP(?)", Integer.class, seconds));
    }

    /** A row that everybody counts in, locked for so many seconds. */
    @GetMapping("/lock")
    Map<String, Object> lock(@RequestParam(defaultValue = "0.004") double seconds) {
        transaction.executeWithoutResult(status -> {
            database.update("UPDATE visits SET count = count + 1 WHERE id = 1");
            database.queryForObject("SELECT SLEEP(?)", Integer.class, seconds);
        });
        return Map.of("counted", 1);
    }

    /** A page that reads a row and notes a visit in Redis. */
    @GetMapping("/page")
    Map<String, Object> page() {
        Integer count = database.queryForObject("SELECT count FROM visits WHERE id = 1", Integer.class);
        return Map.of("count", count, "seen", redis.opsForValue().increment("seen"));
    }

    /**
     * Begins a session of a user, and looks through those he has, as an index of sessions by user does. Where they end, his
     * others do, and the new one has its time.
     */
    @GetMapping("/login")
    Map<String, Object> login(@RequestParam String user, @RequestParam(defaultValue = "false") boolean ends) {
        String session = UUID.randomUUID().toString();
        String index = "sessions:" + user;
        Set<String> known = redis.opsForSet().members(index);
        if (ends) {
            redis.delete(known.stream().map(id -> "session:" + id).toList());
            redis.delete(index);
            redis.opsForValue().set("session:" + session, user, SESSION);
        } else {
            redis.opsForValue().set("session:" + session, user);
        }
        redis.opsForSet().add(index, session);
        return Map.of("session", session, "sessions", known.size() + 1);
    }
}
