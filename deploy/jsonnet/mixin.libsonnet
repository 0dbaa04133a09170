// The kit as a mixin: rules and dashboards as they were generated, to be rendered with your other mixins.
// For other thresholds, windows and objectives write the rules anew with `ragwatch rules --config FILE`.
// Rules come as JSON, because older jsonnets stumble over YAML's literal blocks.
{
  _config+:: {
    // Labels that your Alertmanager needs beside ours, such as {team: 'search'}.
    labels: {},
  },
  local rules = import 'rules.json',
  local labels = self._config.labels,

  prometheusRules+:: rules['ragwatch-recording.yaml'],

  prometheusAlerts+:: {
    groups: [
      group { rules: [rule { labels+: labels } for rule in group.rules] }
      for group in rules['ragwatch-alerts.yaml'].groups
    ],
  },

  grafanaDashboards+:: {
    'ragwatch-overview.json': import '../../grafana/dashboards/overview.json',
    'ragwatch-retrieval.json': import '../../grafana/dashboards/retrieval.json',
    'ragwatch-generation.json': import '../../grafana/dashboards/generation.json',
    'ragwatch-judges.json': import '../../grafana/dashboards/judges.json',
    'ragwatch-operation.json': import '../../grafana/dashboards/operation.json',
  },
}
