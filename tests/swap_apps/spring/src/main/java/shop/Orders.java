package shop;

import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpSession;
import java.net.URI;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicLong;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.core.io.ByteArrayResource;
import org.springframework.http.CacheControl;
import org.springframework.http.HttpStatus;
import org.springframework.http.MediaType;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.server.ResponseStatusException;

/** Orders of a shop, as an application of Spring Boot behind a proxy has them: JSON, a session, a report, Spring's own errors. */
@SpringBootApplication
@RestController
public class Orders {
    private static final int COUNT = 60;
    private static final Instant MADE = Instant.ofEpochSecond(1_000_000_000);

    private final AtomicLong served = new AtomicLong();

    public static void main(String[] arguments) {
        SpringApplication.run(Orders.class, arguments);
    }

    private static Map<String, Object> order(int id) {
        Map<String, Object> order = new HashMap<>();
        order.put("id", id);
        order.put("customer", "customer " + id % 7);
        order.put("lines", List.of(Map.of("sku", "A-" + id, "count", id % 5 + 1)));
        order.put("note", "leave it at the door; ".repeat(6));
        return order;
    }

    /** A page of orders, with the moment of the answer. */
    @GetMapping("/orders")
    Map<String, Object> orders(@RequestParam(defaultValue = "0") int page) {
        List<Map<String, Object>> shown = new ArrayList<>();
        for (int id = page * 10 + 1; id <= Math.min(COUNT, page * 10 + 10); id++) {
            shown.add(order(id));
        }
        return Map.of("page", page, "orders", shown, "at", Instant.now().toString(), "trace", UUID.randomUUID().toString());
    }

    /** One order. A browser may keep it for a minute. */
    @GetMapping("/orders/{id}")
    ResponseEntity<Map<String, Object>> one(@PathVariable int id) {
        if (id < 1 || id > COUNT) {
            throw new ResponseStatusException(HttpStatus.NOT_FOUND);
        }
        return ResponseEntity.ok().cacheControl(CacheControl.maxAge(Duration.ofMinutes(1))).eTag("order-" + id).lastModified(MADE).body(order(id));
    }

    /** The old place of an order. */
    @GetMapping("/order")
    ResponseEntity<Void> old(@RequestParam int id, HttpServletRequest request) {
        URI place = URI.create(request.getScheme() + "://" + request.getServerName() + ":" + request.getServerPort() + "/orders/" + id);
        return ResponseEntity.status(HttpStatus.FOUND).location(place).build();
    }

    /** A report that can be read in parts. */
    @GetMapping("/report.csv")
    ResponseEntity<ByteArrayResource> report() {
        StringBuilder text = new StringBuilder("id,customer\n");
        for (int id = 1; id <= 2000; id++) {
            text.append(id).append(",customer ").append(id % 7).append('\n');
        }
        return ResponseEntity.ok().contentType(MediaType.parseMediaType("text/csv")).lastModified(MADE).body(new ByteArrayResource(text.toString().getBytes()));
    }

    /** A page that may not be kept: it has the visits of a session. */
    @GetMapping("/account")
    ResponseEntity<Map<String, Object>> account(HttpSession session) {
        int visits = session.getAttribute("visits") instanceof Integer before ? before + 1 : 1;
        session.setAttribute("visits", visits);
        return ResponseEntity.ok().cacheControl(CacheControl.noStore()).body(Map.of("session", session.getId(), "visits", visits, "isNew", session.isNew()));
    }

    /** Figures that no two answers share. */
    @GetMapping("/figures")
    Map<String, Object> figures() {
        return Map.of("served", served.incrementAndGet(), "random", ThreadLocalRandom.current().nextDouble(), "nanos", System.nanoTime());
    }
}
