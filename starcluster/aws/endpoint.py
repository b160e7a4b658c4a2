"""Addresses of the AWS services and of the proxy, from the settings; pure."""

from __future__ import annotations

from urllib.parse import quote

from starcluster.config.sections import AwsSettings


def endpoint(settings: AwsSettings, service: str) -> str:
    """Return the address of ``service``; empty for the default of AWS."""
    if settings.aws_endpoint_url:
        return settings.aws_endpoint_url
    if settings.aws_region_host and service == "ec2":
        scheme = "https" if settings.aws_is_secure else "http"
        port = f":{settings.aws_port}" if settings.aws_port else ""
        path = settings.aws_ec2_path.rstrip("/")
        return f"{scheme}://{settings.aws_region_host}{port}{path}"
    return ""


def proxies(settings: AwsSettings) -> dict[str, str] | None:
    """Return the proxy of each scheme; None to use the proxies of the environment."""
    if not settings.aws_proxy:
        return None
    address = settings.aws_proxy.removeprefix("http://").rstrip("/")
    if settings.aws_proxy_port:
        address = f"{address}:{settings.aws_proxy_port}"
    if settings.aws_proxy_user:
        user, password = (
            quote(t, safe="") for t in (settings.aws_proxy_user, settings.aws_proxy_pass)
        )
        address = f"{user}:{password}@{address}"
    return {"http": f"http://{address}", "https": f"http://{address}"}
