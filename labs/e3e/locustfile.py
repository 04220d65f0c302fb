"""A page, asked again as soon as it is there: what Locust calls an HttpUser."""
from locust import HttpUser, constant, task


class Reader(HttpUser):
    wait_time = constant(0)

    @task
    def page(self):
        self.client.get('/')
