"""Run the scenarios of `scenarios.toml` with packets, by ns-3: `python dumbbell.py [name ...]`."""

import csv
import random
import sys
import tomllib
from pathlib import Path
from typing import Any

from ns import ns  # the package `ns3`

HERE = Path(__file__).parent
SEGMENT, WIRE = 946, 1000  # bytes of data, and with the headers of TCP, IP and PPP
SEEDS = (1, 2, 3)
ACCESS = 50  # capacity of what leads to the bottleneck, over that of the bottleneck

# Every millisecond: what the queue holds, without the packet that is sent and the next, which the
# device has taken. Every 7 ms: another delay of each path, up to one packet's time longer, which
# keeps their order; flows would be locked out by their phases without.
ns.cppyy.cppdef("""
#include "ns3/core-module.h"
#include "ns3/point-to-point-channel.h"
#include "ns3/queue-disc.h"
using namespace ns3;
struct QueueMeter {
  Ptr<QueueDisc> disc; double sum = 0; long n = 0;
  void Sample() {
    sum += disc->GetNPackets(); n++;
    Simulator::Schedule(MilliSeconds(1), &QueueMeter::Sample, this);
  }
};
struct Jitter {
  Ptr<Channel> path; Time delay, longer; Ptr<UniformRandomVariable> chance;
  void Change() {
    path->SetAttribute("Delay", TimeValue(delay + chance->GetValue() * longer));
    Simulator::Schedule(MilliSeconds(7), &Jitter::Change, this);
  }
};
""")
QueueMeter, Jitter = ns.cppyy.gbl.QueueMeter, ns.cppyy.gbl.Jitter


def link(a: Any, b: Any, rate: float, delay: float, holds: int) -> Any:
    """A line between two nodes: Mbit/s and ms; packets that the device holds."""
    line = ns.PointToPointHelper()
    line.SetDeviceAttribute("DataRate", ns.StringValue(f"{rate * 1e6:.0f}bps"))
    line.SetChannelAttribute("Delay", ns.StringValue(f"{delay * 1e3:.0f}us"))
    line.SetQueue("ns3::DropTailQueue", "MaxSize", ns.StringValue(f"{holds}p"))
    return line.Install(a, b)


def settings(case: dict[str, Any]) -> None:
    """Give TCP what holds for each flow."""
    for name, value in (
        ("TcpSocket::SegmentSize", SEGMENT), ("TcpSocket::DelAckCount", 1),
        ("TcpSocket::SndBufSize", 1 << 19), ("TcpSocket::RcvBufSize", 1 << 24),
        ("TcpSocketBase::MinRto", "200ms"),
        ("TcpSocketBase::UseEcn", "On" if case.get("ecn") else "Off"),
    ):  # fmt: skip
        ns.Config.SetDefault(f"ns3::{name}", ns.StringValue(str(value)))


def bottleneck(case: dict[str, Any], routers: Any, addresses: Any) -> Any:
    """Join both routers; return the queue."""
    line, control = link(*ends(routers), case["capacity"], 0, 1), ns.TrafficControlHelper()
    control.SetRootQueueDisc(f"ns3::{case['queue']}")
    disc = control.Install(line.Get(0)).Get(0)
    for name, value in case["options"].items():
        disc.SetAttribute(name, ns.StringValue(str(value)))
    addresses.SetBase(ns.Ipv4Address("10.1.0.0"), ns.Ipv4Mask("255.255.255.0"))
    addresses.Assign(line)
    return disc


def ends(nodes: Any) -> tuple[Any, Any]:
    return nodes.Get(0), nodes.Get(1)


def flow(
    case: dict[str, Any], law: str, start: float, trip: float, routers: Any, addresses: Any
) -> tuple[Any, Any]:
    """Add a sender and a receiver; return the receiver, and what makes the path jitter."""
    nodes, capacity = ns.NodeContainer(2), case["capacity"]
    ns.InternetStackHelper().Install(nodes)
    near = link(nodes.Get(0), routers.Get(0), ACCESS * capacity, 0, 100000)
    far = link(routers.Get(1), nodes.Get(1), ACCESS * capacity, trip / 2, 100000)
    for devices in (near, far):
        addresses.NewNetwork()
        given = addresses.Assign(devices)
        ns.TrafficControlHelper().Uninstall(devices)
    jitter = Jitter()
    jitter.path = far.Get(0).GetChannel()
    jitter.chance = ns.CreateObject[ns.UniformRandomVariable]()
    jitter.delay = ns.Seconds(trip / 2e3)
    jitter.longer = ns.Seconds(8e-6 * WIRE / capacity)
    jitter.Change()
    kind = ns.TypeIdValue(ns.TypeId.LookupByName(f"ns3::{law}"))
    for node in ends(nodes):
        ns.Config.Set(f"/NodeList/{node.GetId()}/$ns3::TcpL4Protocol/SocketType", kind)
    here = ns.InetSocketAddress(given.GetAddress(1), 5000).ConvertTo()
    sink = ns.PacketSinkHelper("ns3::TcpSocketFactory", here).Install(nodes.Get(1))
    bulk = ns.BulkSendHelper("ns3::TcpSocketFactory", here).Install(nodes.Get(0))
    bulk.Start(ns.Seconds(start))
    return sink.Get(0), jitter


def run(case: dict[str, Any], seed: int) -> dict[str, str]:
    """Play one scenario and return what its queue and flows did between `from` and `until`."""
    chance = random.Random(seed)
    ns.RngSeedManager.SetRun(seed)
    settings(case)
    routers, addresses = ns.NodeContainer(2), ns.Ipv4AddressHelper()
    ns.InternetStackHelper().Install(routers)
    disc = bottleneck(case, routers, addresses)
    laws = [law for law, count in case["flows"].items() for _ in range(count)]
    flows = []
    for law, start in zip(laws, case.get("starts", [0] * len(laws)), strict=True):
        trip = chance.uniform(*case["rtt"])
        flows.append(flow(case, law, start + chance.uniform(0, 1), trip, routers, addresses))
    ns.Ipv4GlobalRoutingHelper.PopulateRoutingTables()
    meter = QueueMeter()
    meter.disc = disc
    meter.Sample()

    def counts(time: float) -> list[float]:
        """Play until then; return what has been counted."""
        ns.Simulator.Stop(ns.Seconds(time) - ns.Simulator.Now())
        ns.Simulator.Run()
        told = disc.GetStats()
        return [
            meter.sum, meter.n, told.nTotalReceivedPackets, told.nTotalDroppedPackets,
            told.nTotalMarkedPackets, told.nTotalDequeuedPackets,
            *(sink.GetObject[ns.PacketSink]().GetTotalRx() for sink, _ in flows),
        ]  # fmt: skip

    both = counts(case["from"]), counts(case["until"])
    ns.Simulator.Destroy()
    total, n, came, lost, marked, left, *data = (b - a for a, b in zip(*both, strict=True))
    lasted = case["until"] - case["from"]
    return {
        "utilisation": f"{8e-6 * WIRE * left / lasted / case['capacity']:.4f}",
        "queue": f"{total / n:.2f}",
        "loss": f"{lost / came:.3g}",
        "mark": f"{marked / came:.3g}",
        "rates": " ".join(f"{8e-6 * d / lasted * WIRE / SEGMENT:.3f}" for d in data),
    }


def main() -> None:
    cases = tomllib.loads((HERE / "scenarios.toml").read_text())
    out = csv.writer(sys.stdout, lineterminator="\n")
    for name in sys.argv[1:] or cases:
        for seed in SEEDS:
            out.writerow([name, "ns-3 3.44", seed, *run(cases[name], seed).values()])
            sys.stdout.flush()


if __name__ == "__main__":
    main()
