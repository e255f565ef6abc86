"""What is in `deploy/` fits the server: options, ports, paths and times of its files are those of the command."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from gossamer.tools.cache import command as cache
from gossamer.tools.serve import command as serve
from tests.conftest import ROOT

yaml = pytest.importorskip("yaml", reason="PyYAML comes with the extra 'report'")

DEPLOY = ROOT / "deploy"
HEALTH = {"/v2/health/live", "/v2/health/ready"}


def parsed(arguments: list[str]) -> dict[str, Any]:
    """What the command makes of its arguments. Raises what click raises for those that it does not know."""
    values: dict[str, Any] = serve.make_context("serve", list(arguments)).params
    return values


def instructions() -> dict[str, list[str]]:
    """The container file: what is behind each instruction."""
    text = re.sub(r"\\\n", " ", (DEPLOY / "Containerfile").read_text())
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, _, rest = line.partition(" ")
            found.setdefault(name, []).append(rest)
    return found


def objects(name: str) -> dict[str, Any]:
    """The objects of a manifest by kind."""
    return {each["kind"]: each for each in yaml.safe_load_all((DEPLOY / name).read_text())}


def entry() -> list[str]:
    (line,) = instructions()["ENTRYPOINT"]
    program, command, *arguments = json.loads(line)
    assert (program, command) == ("gossamer", "serve")
    return arguments


def test_the_container_file() -> None:
    found = instructions()
    (default,) = found["CMD"]
    values = parsed([*entry(), *json.loads(default)])
    assert values["host"] == "0.0.0.0"
    assert values["models"] == ("/mnt/models",)
    assert found["EXPOSE"] == [f"{values['http_port']} {values['grpc_port']}"]
    (user,) = found["USER"]
    assert f"--uid {user} " in found["RUN"][0]
    assert f"install -d -o {user} -m 700 /var/cache/gossamer" in found["RUN"][0]
    assert "GOSSAMER_CACHE_DIR=/var/cache/gossamer" in found["ENV"][0]
    (warm,) = re.findall(r"gossamer (\w+) (\w+) \{\}", found["RUN"][1])
    assert warm == ("cache", "warm")
    assert "warm" in cache.commands


def test_the_health_check() -> None:
    (line,) = instructions()["HEALTHCHECK"]
    program, option, code = json.loads(line.partition("CMD ")[2])
    assert (program, option) == ("python", "-c")
    compile(code, "health check", "exec")
    assert f"'127.0.0.1', {parsed([*entry(), 'x'])['http_port']}," in code
    assert "/v2/health/live" in code


@pytest.mark.parametrize("name", ["kubernetes.yaml", "kserve.yaml"])
def test_a_container_of_a_manifest(name: str) -> None:
    """Its arguments are known, its ports are those of the server, its probes ask for health, its user has the cache."""
    found = objects(name)
    pod = found["Deployment"]["spec"]["template"]["spec"] if "Deployment" in found else found["ServingRuntime"]["spec"]
    (container,) = pod["containers"]
    values = parsed([*entry(), *container["args"]])
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert set(ports.values()) <= {values["http_port"], values["grpc_port"]}
    assert container["resources"]["limits"]["cpu"] == str(values["workers"])
    probes = [container[key]["httpGet"] for key in container if key.endswith("Probe")]
    assert {probe["path"] for probe in probes} == HEALTH
    assert {ports.get(probe["port"], probe["port"]) for probe in probes} == {values["http_port"]}
    security = {**pod.get("securityContext", {}), **container["securityContext"]}
    assert str(security["runAsUser"]) == instructions()["USER"][0]
    assert security["runAsNonRoot"]
    assert security["readOnlyRootFilesystem"]


def test_a_pod_has_time_to_end() -> None:
    found = objects("kubernetes.yaml")
    pod = found["Deployment"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    _, pause = container["lifecycle"]["preStop"]["exec"]["command"]
    drain = parsed([*entry(), *container["args"]])["drain_timeout"]
    assert pod["terminationGracePeriodSeconds"] > int(pause) + drain
    assert [(mount["mountPath"],) for mount in container["volumeMounts"]] == [tuple(container["args"][:1])]
    names = {port["name"] for port in container["ports"]}
    assert {port["targetPort"] for port in found["Service"]["spec"]["ports"]} == names
    assert found["Service"]["spec"]["selector"] == found["Deployment"]["spec"]["template"]["metadata"]["labels"]


def test_a_served_model_names_its_runtime() -> None:
    found = objects("kserve.yaml")
    runtime, model = found["ServingRuntime"], found["InferenceService"]["spec"]["predictor"]["model"]
    assert model["runtime"] == runtime["metadata"]["name"]
    assert model["protocolVersion"] in runtime["spec"]["protocolVersions"]
    assert model["modelFormat"]["name"] in [each["name"] for each in runtime["spec"]["supportedModelFormats"]]
    assert Path(model["storageUri"]).stem == found["InferenceService"]["metadata"]["name"]
