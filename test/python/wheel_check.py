"""Whether installed wheels work, away from the repository. usage: wheel_check.py"""

import importlib
import importlib.util
import importlib.metadata
import pathlib


def check_hawser(hawser):
    with hawser.Agent("one") as one, hawser.Agent("two") as two:
        ours, theirs = one.empty(4096, "uint8"), two.empty(4096, "uint8", name="memory")
        ours[:] = 7
        peer = one.add_peer(two.card())
        one.write(peer, ours, peer.region("memory")).wait(20)
        assert (theirs == 7).all()


def check_nixl(nixl):
    names = importlib.metadata.packages_distributions()["nixl"]
    version = importlib.metadata.version(names[0])
    assert tuple(int(part) for part in version.split(".")[:2]) >= (1, 5), version
    api = importlib.import_module("nixl._api")
    agent = api.nixl_agent("wheel")
    assert "UCX" in agent.get_plugin_list()


def main():
    for name, check in (("hawser", check_hawser), ("nixl", check_nixl)):
        if importlib.util.find_spec(name) is None:
            print(f"{name}: no such wheel")
            continue
        module = importlib.import_module(name)
        folder = pathlib.Path(module.__file__).parent
        assert (folder / "py.typed").exists(), folder
        check(module)
        print(f"{name} works from {folder}")


if __name__ == "__main__":
    main()
