package closure

import (
	"reflect"
	"testing"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

func TestRefused(t *testing.T) {
	cases := []struct{ name, fault, field, twin string }{
		{"privileged", container("securityContext: {privileged: true}"), "spec.containers[0].securityContext.privileged", container("securityContext: {privileged: false}")},
		{"privileged init container", pod("initContainers: [{name: c, securityContext: {privileged: true}}]"), "spec.initContainers[0].securityContext.privileged", pod("initContainers: [{name: c}]")},
		{"host network", pod("hostNetwork: true"), "spec.hostNetwork", pod("hostNetwork: false")},
		{"host processes", pod("hostPID: true"), "spec.hostPID", pod("hostPID: false")},
		{"host memory", pod("hostIPC: true"), "spec.hostIPC", pod("hostIPC: false")},
		{"host path", pod("volumes: [{name: v, hostPath: {path: /}}]"), "spec.volumes[0].hostPath", pod("volumes: [{name: v, emptyDir: {}}]")},
		{"host path of a volume", cluster("v1", "PersistentVolume", "v", "spec: {hostPath: {path: /}}"), "spec.hostPath", cluster("v1", "PersistentVolume", "v", "spec: {nfs: {path: /}}")},
		{"host port", container("ports: [{containerPort: 80, hostPort: 80}]"), "spec.containers[0].ports[0].hostPort", container("ports: [{containerPort: 80, hostPort: 0}]")},
		{"capability", container("securityContext: {capabilities: {add: [CHOWN, SYS_ADMIN]}}"), "spec.containers[0].securityContext.capabilities.add[1]", container("securityContext: {capabilities: {add: [NET_BIND_SERVICE], drop: [ALL]}}")},
		{"all capabilities", container("securityContext: {capabilities: {add: [ALL]}}"), "spec.containers[0].securityContext.capabilities.add[0]", container("securityContext: {capabilities: {drop: [ALL]}}")},
		{"sysctl", pod("securityContext: {sysctls: [{name: kernel.msgmax, value: '1'}]}"), "spec.securityContext.sysctls[0].name", pod("securityContext: {sysctls: [{name: net/ipv4/tcp_syncookies, value: '1'}]}")},
		{"host process of a Pod", pod("securityContext: {windowsOptions: {hostProcess: true}}"), "spec.securityContext.windowsOptions.hostProcess", pod("securityContext: {windowsOptions: {hostProcess: false}}")},
		{"host process of a container", container("securityContext: {windowsOptions: {hostProcess: true}}"), "spec.containers[0].securityContext.windowsOptions.hostProcess", container("securityContext: {}")},
		{"in a custom resource", object("x.example/v1", "Fleet", "p", "spec: {template: {spec: {hostPID: true, containers: [{name: c, image: i}]}}}"), "spec.template.spec.hostPID", object("x.example/v1", "Fleet", "p", "spec: {hostPID: true}")},
		{"in a cron job", object("batch/v1", "CronJob", "p", "spec: {jobTemplate: {spec: {template: {spec: {hostPID: true}}}}}"), "spec.jobTemplate.spec.template.spec.hostPID", object("batch/v1", "CronJob", "p", "spec: {jobTemplate: {spec: {template: {spec: {}}}}}")},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			set := setOf(t, c.fault)
			got := Refused(set)
			var fields []string
			for _, f := range got {
				fields = append(fields, f.Field)
				if f.Code != "privileged-refused" || f.Severity != evidence.Fail || f.Object != set.Objects[0].ID.String() || f.Origin.Line < 2 {
					t.Errorf("got %+v", f)
				}
			}
			if !reflect.DeepEqual(fields, []string{c.field}) {
				t.Errorf("got %q, want %q", fields, c.field)
			}
			if got := Refused(setOf(t, c.twin)); len(got) > 0 {
				t.Errorf("the twin is not quiet: %+v", got)
			}
		})
	}
}
