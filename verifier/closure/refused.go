package closure

import (
	"fmt"
	"slices"
	"strings"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// Refused lists what a Pod of the set would need to leave its container. The nodes of a kind cluster
// are privileged containers, so such a Pod is root on the host that runs the check. What counts is
// the baseline level of https://kubernetes.io/docs/concepts/security/pod-security-standards/, in every
// Pod spec at any depth; PersistentVolumes on paths of the node count as well, since a claim hands
// them to a Pod. The order is that of evidence.SortFindings.
func Refused(set *evidence.Set) []evidence.Finding {
	var findings []evidence.Finding
	for i := range set.Objects {
		object := &set.Objects[i]
		refuse := func(at node, why string) {
			findings = append(findings, evidence.Finding{
				Code: "privileged-refused", Severity: evidence.Fail, Object: object.ID.String(),
				Field: evidence.FieldPath(at.path...), Origin: object.At(at.path...),
				Message: why + "; kind nodes are privileged containers, so this reaches the host",
				Do:      "remove it from the repository",
			})
		}
		for _, pod := range object.PodSpecs() {
			refusePod(podNode(pod), refuse)
			for _, container := range containers(pod) {
				refuseContainer(container, refuse)
			}
		}
		if object.Group == "" && object.Kind == "PersistentVolume" {
			for _, field := range []string{"hostPath", "local"} {
				if source := (node{value: object.Content}).at("spec", field); source.exists() {
					refuse(source, "the volume is a path of the node")
				}
			}
		}
	}
	return sorted(findings)
}

// safeSysctls are those that the baseline level allows.
var safeSysctls = []string{
	"kernel.shm_rmid_forced",
	"net.ipv4.ip_local_port_range",
	"net.ipv4.ip_unprivileged_port_start",
	"net.ipv4.tcp_syncookies",
	"net.ipv4.ping_group_range",
	"net.ipv4.ip_local_reserved_ports",
	"net.ipv4.tcp_keepalive_time",
	"net.ipv4.tcp_fin_timeout",
	"net.ipv4.tcp_keepalive_intvl",
	"net.ipv4.tcp_keepalive_probes",
}

// safeCapabilities are those that the baseline level allows to add.
var safeCapabilities = strings.Fields("AUDIT_WRITE CHOWN DAC_OVERRIDE FOWNER FSETID KILL MKNOD " +
	"NET_BIND_SERVICE SETFCAP SETGID SETPCAP SETUID SYS_CHROOT")

func refusePod(pod node, refuse func(node, string)) {
	for field, what := range map[string]string{"hostNetwork": "network", "hostPID": "processes", "hostIPC": "shared memory"} {
		if flag := pod.at(field); flag.isTrue() {
			refuse(flag, "the Pod shares the "+what+" of the node")
		}
	}
	for _, volume := range pod.each("volumes") {
		if source := volume.at("hostPath"); source.exists() {
			refuse(source, "the Pod mounts a path of the node")
		}
	}
	for _, sysctl := range pod.at("securityContext").each("sysctls") {
		if name := sysctl.at("name"); !slices.Contains(safeSysctls, strings.ReplaceAll(name.text(), "/", ".")) {
			refuse(name, fmt.Sprintf("sysctl %s is not on the baseline list", name.text()))
		}
	}
	refuseHostProcess(pod, refuse)
}

func refuseContainer(container node, refuse func(node, string)) {
	security := container.at("securityContext")
	if flag := security.at("privileged"); flag.isTrue() {
		refuse(flag, "the container is privileged")
	}
	for _, capability := range security.at("capabilities").each("add") {
		if name := capability.text(); !slices.Contains(safeCapabilities, name) {
			refuse(capability, fmt.Sprintf("capability %s is not on the baseline list", name))
		}
	}
	for _, port := range container.each("ports") {
		if host := port.at("hostPort"); host.exists() && !isZero(host.value) {
			refuse(host, "the container takes a port of the node")
		}
	}
	refuseHostProcess(container, refuse)
}

func refuseHostProcess(owner node, refuse func(node, string)) {
	if flag := owner.at("securityContext", "windowsOptions", "hostProcess"); flag.isTrue() {
		refuse(flag, "the container runs as a process of the node")
	}
}
