// Monitoring mixin: the generated rules and dashboards, to render with your other mixins.
// For other thresholds, windows and objectives generate the rules with `ragwatch rules --config FILE`.
// `make kit` writes rules.json beside a copy of this file, in dist/kit/jsonnet. The rules are JSON, because older jsonnet versions cannot parse YAML literal blocks.
{
  _config+:: {
    // Additional labels for your Alertmanager, such as {team: 'search'}.
    labels: {},
    // URL of the ragwatch pages, to which the dashboards link. For the panels of your judges write the dashboards with
    // `ragwatch rules --config FILE --dashboards DIR`.
    pages: 'https://ragwatch.example.com',
  },
  local rules = import 'rules.json',
  local labels = self._config.labels,
  local pages = self._config.pages,
  local linked(board) = board {
    templating+: {
      list: [
        if variable.name == 'pages' then variable {
          query: pages,
          current+: { text: pages, value: pages },
          options: [self.current],
        } else variable
        for variable in board.templating.list
      ],
    },
  },

  prometheusRules+:: rules['ragwatch-recording.yaml'],

  prometheusAlerts+:: {
    groups: [
      group { rules: [rule { labels+: labels } for rule in group.rules] }
      for group in rules['ragwatch-alerts.yaml'].groups
    ],
  },

  grafanaDashboards+:: {
    'ragwatch-overview.json': linked(import '../../grafana/dashboards/overview.json'),
    'ragwatch-retrieval.json': linked(import '../../grafana/dashboards/retrieval.json'),
    'ragwatch-generation.json': linked(import '../../grafana/dashboards/generation.json'),
    'ragwatch-judges.json': linked(import '../../grafana/dashboards/judges.json'),
    'ragwatch-operation.json': linked(import '../../grafana/dashboards/operation.json'),
  },
}
